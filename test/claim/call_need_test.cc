// SPDX-License-Identifier: Apache-2.0
#include "claim/call_need.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/builders.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::SpecRecovery;

CallNeed NeedIn(DriverPhase phase,
                SpecRecovery recovery = SpecRecovery::kNone) {
  auto claim = std::make_shared<state::ClaimRecord>();
  claim->uid.value = "u-C";
  claim->drivers[kDriver].phase = phase;
  claim->drivers[kDriver].spec_recovery = recovery;
  state::State state;
  state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  EXPECT_EQ(NeedOf(state, {"u-C"}, kOtherDriver), CallNeed::kNothing);
  EXPECT_EQ(NeedOf(state, {"u-D"}, kDriver), CallNeed::kNothing);
  return NeedOf(state, {"u-C"}, kDriver);
}

TEST(CallNeedTest, ADriverIsCalledForWhatIsRecordedAndNotDone) {
  EXPECT_EQ(NeedIn(DriverPhase::kPreparing), CallNeed::kPrepare);
  EXPECT_EQ(NeedIn(DriverPhase::kUnpreparing), CallNeed::kUnprepare);
  EXPECT_EQ(NeedIn(DriverPhase::kPrepared), CallNeed::kNothing);
}

// Its CDI specs are gone, and to prepare again did not bring them back.
TEST(CallNeedTest, AClaimThatIsRenewedIsUnpreparedFirst) {
  EXPECT_EQ(NeedIn(DriverPhase::kPreparing, SpecRecovery::kAskedAgain),
            CallNeed::kPrepare);
  EXPECT_EQ(NeedIn(DriverPhase::kPreparing, SpecRecovery::kUnprepareFirst),
            CallNeed::kUnprepare);
  EXPECT_EQ(NeedIn(DriverPhase::kPreparing, SpecRecovery::kRenewed),
            CallNeed::kPrepare);
}

}  // namespace
}  // namespace devmgr::claim
