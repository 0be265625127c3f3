// SPDX-License-Identifier: Apache-2.0
//
// From a pod that ends to one that is forgotten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "claim/claim_fixture.h"
#include "claim/spec_recovery.h"

namespace devmgr::claim {
namespace {

using state::PodPhase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReleaseTest : public ClaimTest {
 protected:
  void SetUp() override {
    objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
  const Pod q_ = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
};

// DRA-084, DRA-090, DRA-092
TEST_F(ReleaseTest, TheLastPodUnpreparesTheClaim) {
  Prepare(p_);
  AnswerAll();
  EXPECT_TRUE(Release(p_));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReleasing);
  EXPECT_EQ(PodOf(p_).answer, nullptr);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_THAT(Forget(p_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("still holds 1 claim")));
  Unprepared(kDriver, {"u-C"});
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_FALSE(Release(p_));
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_EQ(state().FindPod(PodUid{"u-P"}), nullptr);
}

// DRA-085
TEST_F(ReleaseTest, ASharedClaimStaysPreparedForTheOtherPod) {
  Prepare(p_);
  Prepare(q_);
  AnswerAll();
  EXPECT_TRUE(Release(p_));
  EXPECT_THAT(ToUnprepare(), IsEmpty());
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-Q"));
  EXPECT_EQ(PodOf(q_).phase, PodPhase::kReady);
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_TRUE(Release(q_));
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
}

// DRA-086 to DRA-089
TEST_F(ReleaseTest, WithoutTheDriversWordTheClaimStays) {
  Prepare(p_);
  AnswerAll();
  Release(p_);
  const state::State before = state();
  Unprepared(kDriver, {});
  Unprepared(kOtherDriver, {"u-C"});
  Unprepared(kDriver, {"u-other"});
  EXPECT_TRUE(state() == before);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).devices.size(), 1u);
}

// DRA-091, DRA-095
TEST_F(ReleaseTest, APodThatHoldsNothingHasNothingToGiveUp) {
  Prepare(q_);
  AnswerAll();
  ledger_.Take(RecordSeen(state(), IdentityOf(p_), 1, "waits"));
  const state::State before = state();
  EXPECT_FALSE(Release(p_));
  EXPECT_FALSE(Release(PodBuilder("unknown")));
  EXPECT_TRUE(state() == before);
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-Q"));
  EXPECT_THAT(Forget(p_), IsOk());
}

// DRA-094, improved: only the driver that failed is asked again.
TEST_F(ReleaseTest, OnlyTheDriverThatFailedIsDueAgain) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  Prepare(p_);
  AnswerAll();
  Release(p_);
  EXPECT_EQ(ToUnprepare(),
            (Calls{{kDriver, {"u-C"}}, {kOtherDriver, {"u-C"}}}));
  Unprepared(kDriver, {"u-C"});
  EXPECT_EQ(ToUnprepare(), (Calls{{kOtherDriver, {"u-C"}}}));
  EXPECT_THAT(Forget(p_), StatusIs(absl::StatusCode::kFailedPrecondition));
  Unprepared(kOtherDriver, {"u-C"});
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(Forget(p_), IsOk());
}

TEST_F(ReleaseTest, APodThatEndsIsForgottenWithTheAnswerOfItsLastDriver) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  Prepare(p_);
  AnswerAll();
  EXPECT_TRUE(End(p_));
  EXPECT_FALSE(End(p_));  // Its drivers have yet to answer.
  Unprepared(kDriver, {"u-C"}, {PodUid{"u-P"}});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReleasing);
  Unprepared(kOtherDriver, {"u-C"}, {PodUid{"u-P"}});
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_EQ(state().FindPod(PodUid{"u-P"}), nullptr);
}

TEST_F(ReleaseTest, APodThatEndsAndHasNoClaimOfItsOwnIsForgottenAtOnce) {
  Prepare(p_);
  Prepare(q_);
  AnswerAll();
  EXPECT_TRUE(End(p_));
  EXPECT_EQ(state().FindPod(PodUid{"u-P"}), nullptr);
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-Q"));
  EXPECT_THAT(ToUnprepare(), IsEmpty());
  const Pod none = PodBuilder("none");
  ledger_.Take(RecordSeen(state(), IdentityOf(none), 1, "waits"));
  EXPECT_TRUE(End(none));
  EXPECT_EQ(state().FindPod(IdentityOf(none).uid), nullptr);
  EXPECT_FALSE(End(none));
}

TEST_F(ReleaseTest, WhoDoesNotEndIsNotForgottenWithItsLastClaim) {
  Prepare(p_);
  AnswerAll();
  Release(p_);
  Unprepared(kDriver, {"u-C"}, {PodUid{"u-Q"}, PodUid{"u-nobody"}});
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReleasing);
}

// DRA-080: after a crash between booking and the call, nobody knows whether
// the driver acted; it is asked to unprepare.
TEST_F(ReleaseTest, AClaimThatWasNeverAnsweredIsUnpreparedToo) {
  Prepare(p_);
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-P"));
  EXPECT_TRUE(Release(p_));
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
}

// DRA-080 over a reboot
TEST_F(ReleaseTest, WhatAnotherBootPreparedIsUnpreparedToo) {
  Prepare(p_);
  AnswerAll();
  ledger_.Reboot("boot-2");
  EXPECT_TRUE(Release(p_));
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
}

// v1alpha1 is told which CDI devices it is to unprepare.
TEST_F(ReleaseTest, ALateAnswerToPrepareTellsOnlyWhatThereIsToUnprepare) {
  Prepare(p_);
  Release(p_);
  Answers(kDriver, {"u-C"});
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_EQ(PodOf(p_).phase, state::PodPhase::kReleasing);
  EXPECT_THAT(ClaimOf("u-C").drivers.at(kDriver).LastCdiDeviceIds(),
              ElementsAre(kDriver + std::string("/x=u-C")));
}

// The same where the answer is void, and the driver has not given another.
TEST_F(ReleaseTest, WhatTheDriverSaidBeforeARebootIsWhatItUnprepares) {
  Prepare(p_);
  AnswerAll();
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  EXPECT_THAT(ClaimOf("u-C").drivers.at(kDriver).devices, IsEmpty());
  // Nor does another reboot lose it.
  ledger_.Reboot("boot-3");
  Book(p_, nullptr);
  Release(p_);
  EXPECT_THAT(ClaimOf("u-C").drivers.at(kDriver).LastCdiDeviceIds(),
              ElementsAre(kDriver + std::string("/x=u-C")));
}

TEST_F(ReleaseTest, WhatTheDriverSaidBeforeARepairIsWhatItUnprepares) {
  Prepare(p_);
  AnswerAll();
  ledger_.Take(PrepareAgain(state(), ClaimUid{"u-C"}, kDriver));
  Release(p_);
  EXPECT_THAT(ClaimOf("u-C").drivers.at(kDriver).LastCdiDeviceIds(),
              ElementsAre(kDriver + std::string("/x=u-C")));
}

TEST_F(ReleaseTest, ANewAnswerReplacesWhatWasSaidBefore) {
  Prepare(p_);
  AnswerAll();
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  Answers(kDriver, {{ClaimUid{"u-C"}, {Prepared("dev-1", {"a/b=new"})}}});
  Release(p_);
  const auto& part = ClaimOf("u-C").drivers.at(kDriver);
  EXPECT_THAT(part.LastCdiDeviceIds(), ElementsAre("a/b=new"));
  EXPECT_THAT(part.void_cdi_device_ids, IsEmpty());
}

TEST_F(ReleaseTest, ALateAnswerToUnprepareDoesNotTouchAPreparedClaim) {
  Prepare(p_);
  AnswerAll();
  const state::State before = state();
  Unprepared(kDriver, {"u-C"});
  EXPECT_TRUE(state() == before);
}

TEST_F(ReleaseTest, ReleasingTwiceChangesNothing) {
  Prepare(p_);
  EXPECT_TRUE(Release(p_));
  EXPECT_FALSE(Release(p_));
}

TEST_F(ReleaseTest, OnlyUnsharedClaimsAreUnprepared) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q"), ClaimForP("own")});
  const Pod p = PodBuilder("P").Claim("c1", "C").Claim("c2", "own");
  Prepare(p);
  Prepare(q_);
  AnswerAll();
  Release(p);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-own"}}}));
  EXPECT_THAT(PodOf(p).claims, ElementsAre(ClaimUid{"u-own"}));
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-Q"));
}

// DRA-093
TEST_F(ReleaseTest, TheSpecialClaimIsUnprepared) {
  objects_ = SnapshotOf({ClaimForP("S")});
  const Pod pod = PodBuilder().Container("c").SpecialClaim("S");
  Prepare(pod);
  AnswerAll();
  Release(pod);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-S"}}}));
}

// DRA-096: the pod counts as long as the ledger lists a claim for it.
TEST_F(ReleaseTest, APodHoldsItsClaimsUntilTheyAreUnprepared) {
  Prepare(p_);
  EXPECT_THAT(PodOf(p_).claims, ElementsAre(ClaimUid{"u-C"}));
  AnswerAll();
  EXPECT_THAT(PodOf(p_).claims, ElementsAre(ClaimUid{"u-C"}));
  Release(p_);
  EXPECT_THAT(PodOf(p_).claims, ElementsAre(ClaimUid{"u-C"}));
  AnswerAll();
  EXPECT_THAT(PodOf(p_).claims, IsEmpty());
}

// DRA-107: nothing but the ledger is looked at.
TEST_F(ReleaseTest, NeedsNoObjects) {
  Prepare(p_);
  AnswerAll();
  objects_ = ObjectSnapshot();
  EXPECT_TRUE(Release(p_));
  AnswerAll();
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_THAT(state().pods, IsEmpty());
  EXPECT_THAT(state().claims, IsEmpty());
}

}  // namespace
}  // namespace devmgr::claim
