// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "manager/manager_fixture.h"
#include "support/temp_folder.h"

namespace devmgr {

/// A node with a folder of CDI specs of its own.
class SpecNodeTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.options.cdi_spec_dirs = {folder_.path()};
  }

  std::filesystem::path SpecOf(const std::string& claim) const {
    return folder_.path() / (claim + ".yaml");
  }
  /// The fake driver calls the device of a claim by the claim's name.
  std::filesystem::path WriteSpec(const std::string& claim) {
    std::ofstream(SpecOf(claim)) << "cdiVersion: 0.5.0\nkind: " << kDriver
                                 << "/x\ndevices: [{name: " << claim
                                 << ", containerEdits: {env: [A=1]}}]\n";
    return SpecOf(claim);
  }

  /// Two Ready pods that share the claim `u-c`, named as its UID.
  void PreparePods() {
    WriteSpec("u-c");
    node_.Start();
    node_.Publish(ClaimYaml("u-c", "u-c", {kDriver}, {"u-p", "u-q"}) +
                  PodYaml("p", "u-p", {"u-c"}) + PodYaml("q", "u-q", {"u-c"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
    ASSERT_EQ(node_.drivers.calls().size(), 1u);
  }

  TempFolder folder_;
};

}  // namespace devmgr
