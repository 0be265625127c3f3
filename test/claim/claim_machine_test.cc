// SPDX-License-Identifier: Apache-2.0
#include "claim/claim_machine.h"

#include <gtest/gtest.h>

#include <string>

#include "support/state_table.h"

namespace devmgr::claim {
namespace {

TEST(ClaimMachineTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table("lib/claim/README.md");
  const auto states = AllNamed<ClaimState>(ClaimStateName);
  const auto events = AllNamed<ClaimEvent>(ClaimEventName);
  ASSERT_EQ(states.size(), 5u);
  ASSERT_EQ(events.size(), 9u);
  EXPECT_EQ(table.size(), states.size() * events.size());
  for (const ClaimState state : states) {
    for (const ClaimEvent event : events) {
      const auto next = Next(state, event);
      EXPECT_EQ(next.has_value() ? ClaimStateName(*next) : "refused",
                table.At(ClaimStateName(state), ClaimEventName(event)))
          << ClaimStateName(state) << " x " << ClaimEventName(event);
    }
  }
}

TEST(ClaimMachineTest, OnlyAReferenceToAClaimBeingUnpreparedIsRefused) {
  for (const ClaimState state : AllNamed<ClaimState>(ClaimStateName)) {
    for (const ClaimEvent event : AllNamed<ClaimEvent>(ClaimEventName)) {
      EXPECT_EQ(
          Next(state, event).has_value(),
          state != ClaimState::kUnpreparing || event != ClaimEvent::kReference);
    }
  }
}

TEST(ClaimMachineTest, ReadsTheStateFromTheRecord) {
  state::DriverRecord record;
  EXPECT_EQ(StateOf(nullptr), ClaimState::kAbsent);
  record.phase = state::DriverPhase::kPreparing;
  EXPECT_EQ(StateOf(&record), ClaimState::kPreparing);
  record.spec_recovery = state::SpecRecovery::kUnprepareFirst;
  EXPECT_EQ(StateOf(&record), ClaimState::kRenewing);
  record.spec_recovery = state::SpecRecovery::kNone;
  record.phase = state::DriverPhase::kPrepared;
  EXPECT_EQ(StateOf(&record), ClaimState::kPrepared);
  record.phase = state::DriverPhase::kUnpreparing;
  EXPECT_EQ(StateOf(&record), ClaimState::kUnpreparing);
}

}  // namespace
}  // namespace devmgr::claim
