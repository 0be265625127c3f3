// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {

/// A node from the manifests on disk to a driver with a socket of its own.
class ManifestNodeTest : public ::testing::Test, public DeviceManagerObserver {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(manifests_);
    testing::FakeDraDriverOptions options;
    options.name = kDriver;
    options.root = root_;
    auto driver = testing::FakeDraDriver::Start(options);
    ASSERT_THAT(driver, IsOk());
    driver_ = *std::move(driver);
  }

  void OnPod(const PodInfo&, bool) override { changed_.Put(0); }
  void OnObjects() override { changed_.Put(0); }
  void OnEvent(const EventInfo&) override { changed_.Put(0); }

  void StartManager(ObjectSource& source) {
    DeviceManagerOptions options;
    options.state_dir = root_ / "state";
    options.plugin_registry_dir = root_ / "plugins_registry";
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = &source;
    host.boot_id = [] { return "boot"; };
    host.observers = {this};
    auto manager = DeviceManager::Open(options, host);
    ASSERT_THAT(manager, IsOk());
    manager_ = *std::move(manager);
  }

  /// A pod `u-NAME` and its claim.
  static std::string TextOf(const std::string& name) {
    return ClaimYaml("c" + name, "u-c" + name, {kDriver}, {"u-" + name}) +
           PodYaml(name, "u-" + name, {"c" + name});
  }
  void WritePod(const std::string& name) {
    std::ofstream(manifests_ / (name + ".new")) << TextOf(name);
    std::filesystem::rename(manifests_ / (name + ".new"),
                            manifests_ / (name + ".yaml"));
  }

  bool WaitUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  bool IsReady(const std::string& pod) const {
    const auto info = manager_->View()->PodInfoOf(PodUid{"u-" + pod});
    return info.ok() && info->state == PodState::kReady;
  }
  bool BecomesReady(const std::string& pod) {
    return WaitUntil([&] { return IsReady(pod); });
  }
  /// Waits until the pod is released and forgotten.
  bool IsReleased(const std::string& pod) {
    return WaitUntil([&] {
      return absl::IsNotFound(
          manager_->View()->PodInfoOf({"u-" + pod}).status());
    });
  }

  const TempFolder folder_;
  const std::filesystem::path root_ = folder_.path();
  const std::filesystem::path manifests_ = root_ / "manifests";
  Mailbox<int> changed_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<DeviceManager> manager_;
};

}  // namespace devmgr
