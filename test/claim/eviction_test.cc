// SPDX-License-Identifier: Apache-2.0
#include "claim/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <variant>

#include "claim/prepare_intent.h"
#include "state/record_builders.h"
#include "support/status_matchers.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::MakeClaim;
using state::MakePod;
using state::PodPhase;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const state::Eviction kEviction{"DeletionByDeviceTaintManager", "it is broken",
                                7};

class EvictionTest : public ::testing::Test {
 protected:
  /// Pod `a` with its claim, which it holds in some phases.
  void Have(PodPhase phase) {
    state::PodRecord pod = MakePod(state::kPodA, "a", phase);
    if (!pod.claims.empty()) {
      state_.Put(std::make_shared<const state::ClaimRecord>(
          MakeClaim(phase == PodPhase::kReleasing ? DriverPhase::kUnpreparing
                                                  : DriverPhase::kPrepared,
                    {state::kPodA})));
    }
    state_.Put(std::make_shared<const state::PodRecord>(std::move(pod)));
  }
  /// True when there was something to decide.
  bool Commit(const state::Decision& decision) {
    if (decision.changes.empty()) return false;
    state::Batch batch;
    batch.seq = state_.seq + 1;
    batch.decision = decision;
    EXPECT_THAT(state::ApplyNew(state_, batch), IsOk());
    EXPECT_THAT(state::CheckInvariants(state_), IsEmpty());
    return true;
  }
  bool Begin() {
    return Commit(BeginEviction(state_, state::kPodA, kEviction));
  }
  const state::PodRecord& Pod() { return *state_.FindPod(state::kPodA); }

  state::State state_;
};

TEST_F(EvictionTest, APodKeepsWhatItHoldsUntilItHasLeft) {
  Have(PodPhase::kReady);
  ASSERT_TRUE(Begin());
  EXPECT_EQ(Pod().phase, PodPhase::kReady);
  EXPECT_NE(Pod().answer, nullptr);
  EXPECT_TRUE(state::IsEvicting(Pod()));
  EXPECT_EQ(CheckEviction(state_, state::kPodA).kind, Verdict::Kind::kReject);
  EXPECT_EQ(CheckEviction(state_, state::kPodA).message, "it is broken");
  // Once.
  EXPECT_FALSE(Begin());
  EXPECT_THAT(FinishEviction(state_, state::kPodA),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("still holds 1 claim")));
  EXPECT_THAT(BookPod(state_, {state::kPodA, {"default", "a"}}, 1, nullptr,
                      "another boot"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has to leave its devices: it is broken")));
}

TEST_F(EvictionTest, ItIsRejectedForGoodInTheEnd) {
  Have(PodPhase::kAdmitted);
  ASSERT_TRUE(Begin());
  EXPECT_EQ(Pod().phase, PodPhase::kAdmitted);
  const auto finished = FinishEviction(state_, state::kPodA);
  ASSERT_THAT(finished, IsOk());
  EXPECT_EQ(finished->kind, state::DecisionKind::kEvicted);
  ASSERT_TRUE(Commit(*finished));
  EXPECT_EQ(Pod().phase, PodPhase::kRejected);
  EXPECT_EQ(Pod().reason, "DeletionByDeviceTaintManager");
  EXPECT_EQ(Pod().message, "it is broken");
  EXPECT_FALSE(state::IsEvicting(Pod()));
  EXPECT_FALSE(Begin());
  EXPECT_THAT(FinishEviction(state_, state::kPodA)->changes, IsEmpty());
}

TEST_F(EvictionTest, OneThatHoldsNothingIsRejectedAtOnce) {
  Have(PodPhase::kWaiting);
  const auto decision = BeginEviction(state_, state::kPodA, kEviction);
  EXPECT_EQ(decision.kind, state::DecisionKind::kEvicted);
  ASSERT_TRUE(Commit(decision));
  EXPECT_EQ(Pod().phase, PodPhase::kRejected);
}

TEST_F(EvictionTest, PodsThatAreUnknownRejectedOrGoingAreLeftAlone) {
  EXPECT_FALSE(Begin());
  Have(PodPhase::kRejected);
  EXPECT_FALSE(Begin());
  Have(PodPhase::kReleasing);
  EXPECT_FALSE(Begin());
}

}  // namespace
}  // namespace devmgr::claim
