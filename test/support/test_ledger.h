// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "state/decision.h"
#include "state/state.h"
#include "support/status_matchers.h"

namespace devmgr {

/// A projection that takes decisions as the ledger does, and checks the
/// invariants after each, and that each can be taken back.
class TestLedger {
 public:
  const state::State& state() const { return state_; }
  const std::string& boot_id() const { return boot_id_; }

  /// Another boot of the machine: nothing else is lost.
  void Reboot(const std::string& boot_id) { boot_id_ = boot_id; }

  /// False when there is nothing to write.
  bool Take(const state::Decision& decision) {
    if (decision.changes.empty()) return false;
    const state::State before = state_;
    state::Batch batch{state_.seq + 1, 1'000, decision, {}};
    EXPECT_THAT(state::ApplyNew(state_, batch), IsOk());
    EXPECT_THAT(state::CheckInvariants(state_, boot_id_), testing::IsEmpty());
    state::State reverted = state_;
    EXPECT_THAT(state::Revert(reverted, batch), IsOk());
    EXPECT_TRUE(reverted == before) << "reverting batch " << batch.seq;
    return true;
  }

 private:
  state::State state_;
  std::string boot_id_ = "boot-1";
};

}  // namespace devmgr
