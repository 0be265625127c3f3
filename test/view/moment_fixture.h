// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "state/records.h"
#include "view/moment.h"

namespace devmgr::view {

/// A moment of a running manager, and records for its ledger.
class MomentTest : public testing::Test {
 protected:
  static constexpr char kDriver[] = "gpu.example.com";
  static constexpr char kBoot[] = "boot-now";

  MomentTest() {
    auto terms = std::make_shared<Terms>();
    terms->boot_id = kBoot;
    terms->node_name = "n1";
    moment_.terms = std::move(terms);
    moment_.objects = std::make_shared<const ObjectSnapshot>();
  }

  static PodUid Uid(const std::string& name) { return {"uid-" + name}; }

  static std::shared_ptr<state::PodRecord> MakePod(const std::string& name,
                                                   state::PodPhase phase) {
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = Uid(name);
    pod->name = {"default", name};
    pod->phase = phase;
    if (phase == state::PodPhase::kReady) pod->boot_id = kBoot;
    return pod;
  }

  /// Of one pod, and being prepared by kDriver.
  static std::shared_ptr<state::ClaimRecord> MakeClaim(const std::string& name,
                                                       const PodUid& pod) {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid = ClaimUid{"uid-" + name};
    claim->name = {"default", name};
    claim->pods = {pod};
    claim->drivers[kDriver].phase = state::DriverPhase::kPreparing;
    return claim;
  }

  Moment moment_;
};

}  // namespace devmgr::view
