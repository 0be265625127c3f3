// SPDX-License-Identifier: Apache-2.0
#include "admission/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "claim/prepare_intent.h"
#include "claim/release.h"
#include "claim/spec_recovery.h"
#include "support/builders.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

namespace devmgr::admission {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Kind = Verdict::Kind;

WaitingFor Driver(const std::string& name) {
  return {WaitingFor::Kind::kDriver, name};
}
WaitingFor Claim(const std::string& name) {
  return {WaitingFor::Kind::kClaim, "ns/" + name};
}
WaitingFor PodNamed(const std::string& name) {
  return {WaitingFor::Kind::kPod, "ns/" + name};
}

class JudgeTest : public testing::Test {
 protected:
  JudgeInput Input() {
    return {ledger_.state(),
            objects_,
            ledger_.boot_id(),
            [this](const std::string& name) { return drivers_.contains(name); },
            {}};
  }
  Judgement JudgePod(const Pod& pod) { return Judge(pod, Input()); }

  static claim::PodIdentity IdentityOf(const Pod& pod) {
    return {PodUid{pod.metadata.uid}, pod.metadata.FullName()};
  }

  /// Judges and books, as the manager does.
  void Book(const Pod& pod) {
    const Judgement judgement = JudgePod(pod);
    ASSERT_EQ(judgement.verdict.kind, Kind::kAdmit)
        << judgement.verdict.message;
    const auto booked = claim::BookPod(ledger_.state(), IdentityOf(pod), 1,
                                       &judgement.plan, ledger_.boot_id());
    ASSERT_THAT(booked, IsOk());
    ledger_.Take(booked->decision);
  }
  void Answer(const std::string& driver, const std::string& claim) {
    ledger_.Take(claim::RecordPrepared(
        ledger_.state(), driver,
        {{ClaimUid{claim}, {Prepared("dev-1", {"a.b/c=d"})}}},
        ledger_.boot_id()));
  }

  TestLedger ledger_;
  ObjectSnapshot objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  std::set<std::string> drivers_ = {kDriver};
  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
  const Pod q_ = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
};

TEST_F(JudgeTest, APodThatNeedsNothingPassesWithoutAnyDriver) {
  drivers_.clear();
  objects_ = ObjectSnapshot();  // incomplete, too
  const Judgement judgement = JudgePod(PodBuilder("idle").Container("c"));
  EXPECT_EQ(judgement.verdict.kind, Kind::kAdmit);
  EXPECT_FALSE(judgement.from_ledger);
  EXPECT_THAT(judgement.plan.claims, IsEmpty());
  EXPECT_EQ(judgement.plan.needs.size(), 1u);
}

TEST_F(JudgeTest, AdmitsWithAPlan) {
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kAdmit);
  ASSERT_EQ(judgement.plan.claims.size(), 1u);
  EXPECT_EQ(judgement.plan.claims[0].uid, ClaimUid{"u-C"});
}

// DRA-063: nothing is decided for a pod that waits.
TEST_F(JudgeTest, WaitsForADriverThatIsNotRegistered) {
  drivers_.clear();
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_EQ(judgement.verdict.reason, "DriverNotRegistered");
  EXPECT_THAT(judgement.verdict.message,
              HasSubstr("DRA driver d.example.com is not registered"));
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(Driver(kDriver)));
}

TEST_F(JudgeTest, ListsAllThatIsWaitedFor) {
  objects_ = SnapshotOf({ClaimForP("A").From(kOtherDriver),
                         ClaimBuilder("B").For("u-P").NotAllocated()});
  const Judgement judgement =
      JudgePod(PodBuilder().Claim("c1", "A").Claim("c2", "B"));
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_THAT(judgement.verdict.waiting_for,
              UnorderedElementsAre(Claim("B"), Driver(kOtherDriver)));
  EXPECT_THAT(judgement.verdict.message,
              AllOf(HasSubstr("ResourceClaim B: not allocated"),
                    HasSubstr(kOtherDriver)));
}

TEST_F(JudgeTest, ARejectionWinsOverAMissingDriver) {
  drivers_.clear();
  objects_ = SnapshotOf({ClaimForP("A"), ClaimForP("B")});
  const Judgement judgement =
      JudgePod(PodBuilder().Claim("c1", "A").EmptyClaim("c2"));
  EXPECT_EQ(judgement.verdict.kind, Kind::kReject);
  EXPECT_EQ(judgement.verdict.reason, "InvalidPod");
  EXPECT_THAT(judgement.verdict.waiting_for, IsEmpty());
}

// DRA-065, DRA-066: a prepared claim needs no driver any more.
TEST_F(JudgeTest, APodThatHoldsClaimsWaitsInsteadOfBeingRejected) {
  Book(p_);
  const Judgement judgement =
      JudgePod(PodBuilder("P").Claim("c1", "C").EmptyClaim("c2"));
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_EQ(judgement.verdict.reason, "InvalidPod");
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(PodNamed("P")));
}

// Of the pod's last incarnation: the claim of this one is yet to be written.
TEST_F(JudgeTest, AClaimOfTheLastIncarnationIsWaitedFor) {  // DRA-050
  const Pod pod = PodBuilder("P").Template("c1").Made("c1", "C").Container("c");
  objects_ = SnapshotOf({ClaimForP().OwnedBy(Owner("u-old"))});
  const Judgement judgement = JudgePod(pod);
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_EQ(judgement.verdict.reason, "ClaimNotOwned");
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(Claim("C")));
  objects_ = SnapshotOf({ClaimForP().OwnedBy(Owner("u-P"))});
  EXPECT_EQ(JudgePod(pod).verdict.kind, Kind::kAdmit);
}

TEST_F(JudgeTest, APreparedClaimIsSharedWithoutItsDriver) {
  Book(p_);
  Answer(kDriver, "u-C");
  drivers_.clear();
  EXPECT_EQ(JudgePod(q_).verdict.kind, Kind::kAdmit);
}

TEST_F(JudgeTest, AClaimBeingPreparedNeedsItsDriver) {
  Book(p_);
  drivers_.clear();
  EXPECT_EQ(JudgePod(q_).verdict.reason, "DriverNotRegistered");
  EXPECT_EQ(JudgePod(p_).verdict.reason, "DriverNotRegistered");
}

TEST_F(JudgeTest, OnlyDriversThatHaveNotAnsweredAreNeeded) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  drivers_ = {kDriver, kOtherDriver};
  Book(p_);
  Answer(kDriver, "u-C");
  drivers_.clear();
  EXPECT_THAT(JudgePod(p_).verdict.waiting_for,
              ElementsAre(Driver(kOtherDriver)));
}

TEST_F(JudgeTest, AReadyPodIsAdmittedByTheLedgerAlone) {
  Book(p_);
  Answer(kDriver, "u-C");
  drivers_.clear();
  objects_ = ObjectSnapshot();
  // Whatever the object says now, deletion included.
  const Pod changed = PodBuilder("P").EmptyClaim("c1").Deleted();
  const Judgement judgement = JudgePod(changed);
  EXPECT_EQ(judgement.verdict.kind, Kind::kAdmit);
  EXPECT_TRUE(judgement.from_ledger);
}

TEST_F(JudgeTest, AReadyPodOfAnotherBootNeedsItsDriversButNoObjects) {
  Book(p_);
  Answer(kDriver, "u-C");
  ledger_.Reboot("boot-2");
  objects_ = ObjectSnapshot();
  EXPECT_EQ(JudgePod(p_).verdict.kind, Kind::kAdmit);
  drivers_.clear();
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.reason, "DriverNotRegistered");
  EXPECT_TRUE(judgement.from_ledger);
  const auto* record = ledger_.state().FindPod(PodUid{"u-P"});
  ASSERT_NE(record, nullptr);
  EXPECT_THAT(JudgeBooked(*record, Input()).waiting_for,
              ElementsAre(Driver(kDriver)));
}

TEST_F(JudgeTest, ARejectedPodStaysRejectedWithItsReason) {
  const auto rejected =
      claim::RejectPod(ledger_.state(), IdentityOf(p_), 1,
                       {Kind::kReject, "InvalidPod", "why", {}});
  ASSERT_THAT(rejected, IsOk());
  ledger_.Take(*rejected);
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kReject);
  EXPECT_EQ(judgement.verdict.reason, "InvalidPod");
  EXPECT_EQ(judgement.verdict.message, "why");
  EXPECT_TRUE(judgement.from_ledger);
}

TEST_F(JudgeTest, APodBeingReleasedIsWaitedFor) {
  Book(p_);
  ledger_.Take(claim::BeginRelease(ledger_.state(), PodUid{"u-P"}));
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_EQ(judgement.verdict.reason, "PodReleasing");
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(PodNamed("P")));
}

TEST_F(JudgeTest, APodBeingDeletedIsNotTakenUp) {
  const Pod pod = PodBuilder().Claim("c1", "C").Deleted();
  EXPECT_EQ(JudgePod(pod).verdict.reason, "PodTerminating");
}

TEST_F(JudgeTest, ANewPodOfTheNameWaitsForTheOldOne) {
  ledger_.Take(claim::RecordSeen(ledger_.state(), {PodUid{"old"}, NameOf("P")},
                                 1, "waits"));
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_EQ(judgement.verdict.reason, "PreviousPodReleasing");
  EXPECT_THAT(judgement.verdict.message, HasSubstr("UID old"));
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(PodNamed("P")));
  // Nor does the old one wait for the new, once both are known.
  ledger_.Take(claim::RecordSeen(ledger_.state(), IdentityOf(p_), 1, "waits"));
  EXPECT_EQ(JudgePod(p_).verdict.reason, "PreviousPodReleasing");
  EXPECT_EQ(JudgePod(PodBuilder("P").Uid("old").Container("c")).verdict.kind,
            Kind::kAdmit);
}

// DRA-082
TEST_F(JudgeTest, WaitsForAClaimThatIsBeingUnprepared) {
  Book(p_);
  Answer(kDriver, "u-C");
  ledger_.Take(claim::BeginRelease(ledger_.state(), PodUid{"u-P"}));
  const Judgement judgement = JudgePod(q_);
  EXPECT_EQ(judgement.verdict.reason, "ClaimBeingUnprepared");
  EXPECT_THAT(judgement.verdict.waiting_for, ElementsAre(Claim("C")));
}

// AL-129: a claim of Kubernetes 1.30 whose parameters do not make it shareable.
TEST_F(JudgeTest, OnePodAtATimeHasAnOldClaimThatIsNotShareable) {
  ResourceClaim claim = ClaimForP().For("u-Q", "Q");
  claim.spec.old.emplace();
  objects_ = SnapshotOf({claim});
  Book(p_);
  Answer(kDriver, "u-C");
  drivers_.clear();
  const Verdict verdict = JudgePod(q_).verdict;
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ClaimInUse");
  EXPECT_EQ(verdict.message,
            "ResourceClaim C is not shareable, and pod ns/P has it");
  EXPECT_THAT(verdict.waiting_for, ElementsAre(Claim("C"), PodNamed("P")));
  EXPECT_EQ(JudgePod(p_).verdict.kind, Kind::kAdmit);
  claim.status.allocation->shareable = true;
  objects_ = SnapshotOf({claim});
  EXPECT_EQ(JudgePod(q_).verdict.kind, Kind::kAdmit);
}

// DRA-071, DRA-105
TEST_F(JudgeTest, WaitsForAnOlderClaimOfTheName) {
  Book(p_);
  objects_ =
      SnapshotOf({ClaimBuilder("C").Uid("new").From(kDriver).For("u-Q", "Q")});
  const Judgement judgement = JudgePod(q_);
  EXPECT_EQ(judgement.verdict.reason, "ClaimRecreated");
  EXPECT_THAT(judgement.verdict.message,
              AllOf(HasSubstr("different UID u-C"),
                    HasSubstr("pod ns/P has it, and releases it first")));
}

// DW-14: nobody else would ever unprepare the old one.
TEST_F(JudgeTest, APodWhoseOwnClaimWasReplacedIsToBeBookedAnew) {
  Book(p_);
  EXPECT_FALSE(JudgePod(p_).book_anew);
  objects_ = SnapshotOf({ClaimForP().Uid("new")});
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.reason, "ClaimRecreated");
  EXPECT_THAT(judgement.verdict.message,
              AllOf(HasSubstr("different UID u-C"), HasSubstr("has UID new"),
                    HasSubstr("the pod gives up the old one first")));
  EXPECT_TRUE(judgement.book_anew);
  EXPECT_FALSE(
      JudgePod(PodBuilder("P").Uid("u-other").Claim("c1", "C")).book_anew)
      << "another pod's claim is not its own to give up";
}

TEST_F(JudgeTest, APodWhoseOwnClaimHasOtherDriversIsToBeBookedAnew) {
  Book(p_);
  drivers_.insert(kOtherDriver);
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.reason, "ClaimAllocationChanged");
  EXPECT_TRUE(judgement.book_anew);
}

/// Where this node allocates, the new one has no devices while the pod holds
/// the old one.
TEST_F(JudgeTest, AClaimIsReplacedAlsoWhileTheNewOneIsNotAllocated) {
  Book(p_);
  objects_ = SnapshotOf({ClaimBuilder("C").Uid("new").NotAllocated()});
  const Judgement judgement = JudgePod(p_);
  EXPECT_EQ(judgement.verdict.kind, Kind::kWait);
  EXPECT_TRUE(judgement.book_anew);
}

TEST_F(JudgeTest, APodThatMayRunKeepsItsClaimThoughItWasReplaced) {
  objects_ = SnapshotOf({ClaimForP()});
  Book(p_);
  Answer(kDriver, "u-C");
  objects_ = SnapshotOf({ClaimForP().Uid("new")});
  EXPECT_EQ(JudgePod(p_).verdict.kind, Kind::kAdmit) << "the ledger counts";
  // Its devices are repaired while it runs.
  ledger_.Take(claim::PrepareAgain(ledger_.state(), ClaimUid{"u-C"}, kDriver));
  Judgement judgement = JudgePod(p_);
  EXPECT_THAT(judgement.verdict.message,
              HasSubstr("the pod may run with the old one and has to be "
                        "re-created"));
  EXPECT_FALSE(judgement.book_anew);
  // After a reboot nothing runs.
  ledger_.Reboot("boot-2");
  judgement = JudgePod(p_);
  EXPECT_TRUE(judgement.book_anew);
}

TEST(WakesTest, OnlyAChangeOfWhatIsWaitedForWakes) {
  const std::vector<WaitingFor> waits = {Claim("C"), Driver("d")};
  EXPECT_EQ(WakeBy({Driver("x"), Driver("d")}, waits), Wake::kAtOnce);
  EXPECT_EQ(WakeBy({Claim("C")}, waits), Wake::kAtOnce);
  EXPECT_EQ(WakeBy({Claim("D"), Driver("e")}, waits), Wake::kNot);
  // Of the same name, but another kind.
  EXPECT_EQ(WakeBy({PodNamed("C"), {WaitingFor::Kind::kResource, "d"}}, waits),
            Wake::kNot);
  EXPECT_EQ(WakeBy(std::set<WaitingFor>(), waits), Wake::kNot);
  EXPECT_EQ(WakeBy({Claim("C")}, {}), Wake::kNot);
}

TEST(WakesTest, WhoWaitsForDevicesOfClaimsIsJudgedInTurn) {
  const WaitingFor free{WaitingFor::Kind::kFreeDevices, "d"};
  EXPECT_EQ(WakeBy({free}, {free, Claim("C")}), Wake::kInTurn);
  EXPECT_EQ(WakeBy({free, Claim("C")}, {free, Claim("C")}), Wake::kAtOnce);
  EXPECT_TRUE(IsNeverMissed(WaitingFor::Kind::kTaint));
  EXPECT_TRUE(IsNeverMissed(WaitingFor::Kind::kQuota));
  EXPECT_FALSE(IsNeverMissed(WaitingFor::Kind::kDriver));
}

}  // namespace
}  // namespace devmgr::admission
