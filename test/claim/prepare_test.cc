// SPDX-License-Identifier: Apache-2.0
//
// Booking: from an admitted pod to a pod that is Ready. "No call" means that
// no driver is due one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "claim/claim_fixture.h"
#include "claim/spec_recovery.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::PodPhase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class PrepareTest : public ClaimTest {
 protected:
  /// Pod `name` with a container `c` that uses claim `claim`.
  static PodBuilder PodWith(const std::string& name, const std::string& claim) {
    PodBuilder pod(name);
    pod.Claim("c1", claim).Container("c").Uses("c1");
    return pod;
  }

  const Pod p_ = PodWith("P", "C");
  const Pod q_ = PodWith("Q", "C");
};

// DRA-057
TEST_F(PrepareTest, BooksThePodAndIsReadyWithTheAnswer) {
  objects_ = SnapshotOf({ClaimForP()});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-P"));
  EXPECT_EQ(ClaimOf("u-C").name, NameOf("C"));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_EQ(PodOf(p_).answer, nullptr);

  const auto device = Prepared("dev-1", {"cdi.example.com/x=1"});
  Answers(kDriver, {{ClaimUid{"u-C"}, {device}}});
  EXPECT_THAT(ToPrepare(), IsEmpty());
  state::DriverRecord expected{DriverPhase::kPrepared, {device}, "boot-1"};
  expected.allocated = {{"pool-1", "dev-1", false}};
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver), expected);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(p_).boot_id, "boot-1");
  EXPECT_THAT(CdiOf(p_, "c"), ElementsAre("cdi.example.com/x=1"));
}

// DRA-023: what the driver gets with each call is the ledger's from then on.
TEST_F(PrepareTest, AHandleIsKeptUntilTheClaimIsGone) {
  ResourceClaim claim = ClaimBuilder("C").For("u-P");
  claim.status.allocation->resource_handles = {{kDriver, {"h", {}}}};
  objects_ = SnapshotOf({claim});
  Prepare(p_);
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).handle.data, "h");
  const auto device = Prepared("dev-1", {"cdi.example.com/x=1"});
  Answers(kDriver, {{ClaimUid{"u-C"}, {device}}});
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).handle.data, "h");
  ledger_.Take(PrepareAgain(state(), ClaimUid{"u-C"}, kDriver));
  const state::DriverRecord again = ClaimOf("u-C").drivers.at(kDriver);
  EXPECT_EQ(again.phase, DriverPhase::kPreparing);
  EXPECT_THAT(again.devices, IsEmpty());
  EXPECT_EQ(again.handle.data, "h");
  EXPECT_TRUE(Release(p_));
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).handle.data, "h");
}

// AL-129
TEST_F(PrepareTest, AnOldClaimIsBookedForOnePodUnlessItIsShareable) {
  ClaimBuilder builder("C");
  for (int i = 0; i < 34; ++i) {
    builder.For(fmt::format("u-P{}", i), fmt::format("P{}", i));
  }
  ResourceClaim claim = builder;
  claim.status.allocation->resource_handles = {{kDriver, {}}};
  const auto pod = [](int i) -> Pod {
    return PodWith(fmt::format("P{}", i), "C");
  };
  objects_ = SnapshotOf({claim});
  EXPECT_EQ(Prepare(pod(0)).kind, Kind::kAdmit);
  const state::State before = state();
  EXPECT_EQ(Prepare(pod(1)).reason, "ClaimInUse");
  EXPECT_TRUE(state() == before);
  EXPECT_EQ(Prepare(pod(0)).kind, Kind::kAdmit);
  AnswerAll();
  EXPECT_TRUE(End(pod(0)));
  EXPECT_EQ(Prepare(pod(1)).reason, "ClaimBeingUnprepared");
  AnswerAll();
  EXPECT_EQ(Prepare(pod(1)).kind, Kind::kAdmit);

  claim.status.allocation->shareable = true;
  objects_ = SnapshotOf({claim});
  for (int i = 2; i < 33; ++i) EXPECT_EQ(Prepare(pod(i)).kind, Kind::kAdmit);
  const Verdict full = Prepare(pod(33));
  EXPECT_EQ(full.reason, "ClaimInUse");
  EXPECT_THAT(full.message,
              HasSubstr("ResourceClaim C can be shared by 32 pods, and as many "
                        "have it: ns/P1, ns/P10, "));
  EXPECT_EQ(full.waiting_for.size(), 33u);
  EXPECT_TRUE(End(pod(20)));
  EXPECT_EQ(Prepare(pod(33)).kind, Kind::kAdmit);
}

// DRA-058
TEST_F(PrepareTest, AnAnswerWithoutDevicesIsPrepared) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  Answers(kDriver, {{ClaimUid{"u-C"}, {}}});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_THAT(CdiOf(p_, "c"), IsEmpty());
}

// DRA-059, DRA-060: an error leaves no trace in what is recorded.
TEST_F(PrepareTest, WithoutAnAnswerThePodKeepsItsReference) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  Answers(kDriver, std::map<ClaimUid, std::vector<state::PreparedDevice>>{});
  EXPECT_THAT(PodsOf("u-C"), ElementsAre("u-P"));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
}

TEST_F(PrepareTest, BookingAgainBeforeTheAnswerChangesNothing) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  const state::State before = state();
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_EQ(Book(p_, nullptr).kind, Kind::kAdmit);
  EXPECT_TRUE(state() == before);
}

// DRA-044 to DRA-051: what is not admitted is not booked.
TEST_F(PrepareTest, NothingIsBookedForAPodThatIsNotAdmitted) {
  objects_ = SnapshotOf({ClaimForP("A"), ClaimForP("N").NotAllocated(),
                         ClaimBuilder("R").From(kDriver).For("u-Q", "Q")});
  const std::vector<Pod> pods = {
      PodBuilder().Claim("c1", "A").Template("c2"),
      PodBuilder().Claim("c1", "A").EmptyClaim("c2"),
      PodBuilder().Claim("c1", "A").Claim("c2", "missing"),
      PodBuilder().Claim("c1", "A").Claim("c2", "N"),
      PodBuilder().Claim("c1", "A").Claim("c2", "R"),
      PodBuilder().Claim("c1", "A").Template("c2").Made("c2", "A")};
  for (const Pod& pod : pods) {
    EXPECT_NE(Prepare(pod).kind, Kind::kAdmit);
    EXPECT_TRUE(state() == state::State());
  }
}

// DRA-052
TEST_F(PrepareTest, AnAllocationWithoutResultsNeedsNoCall) {
  objects_ = SnapshotOf({ClaimBuilder("C").For("u-P")});
  Prepare(p_);
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_TRUE(Knows("u-C"));
  EXPECT_TRUE(Release(p_));
  EXPECT_THAT(ToUnprepare(), IsEmpty());
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_THAT(state().pods, IsEmpty());
}

// DRA-043
TEST_F(PrepareTest, AClaimThatIsNotNeededNeedsNoCall) {
  const Pod pod = PodBuilder()
                      .Template("c1")
                      .Made("c1", std::nullopt)
                      .Container("c")
                      .Uses("c1");
  Prepare(pod);
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kReady);
  EXPECT_THAT(CdiOf(pod, "c"), IsEmpty());
  EXPECT_THAT(state().claims, IsEmpty());
  EXPECT_FALSE(Release(pod));
  EXPECT_THAT(Forget(pod), IsOk());
}

// DRA-062, improved: who has answered is not asked again.
TEST_F(PrepareTest, OnlyTheClaimWithoutAnAnswerIsDueAgain) {
  objects_ = SnapshotOf({ClaimForP("A"), ClaimForP("B")});
  const Pod pod = PodBuilder().Claim("c1", "A").Claim("c2", "B").Container("c");
  Prepare(pod);
  Answers(kDriver, {"u-A"});
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kPreparing);
  Prepare(pod);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-B"}}}));
  Answers(kDriver, {"u-B"});
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kReady);
}

// What a damaged ledger has lost comes with the next plan.
TEST_F(PrepareTest, AHolderWithoutNeedsIsNotReadyBeforeItIsPlanned) {
  objects_ = SnapshotOf({ClaimForP("A")});
  const Pod pod = PodWith("P", "A");
  Prepare(pod);
  AnswerAll();
  ASSERT_EQ(PodOf(pod).phase, PodPhase::kReady);
  state::PodRecord record = PodOf(pod);
  record.name = {"default", "recovered-u-P"};
  record.phase = PodPhase::kPreparing;
  record.answer = nullptr;
  record.needs.clear();
  state::Decision decision;
  decision.changes = {
      state::PutPod{std::make_shared<state::PodRecord>(record)}};
  ledger_.Take(decision);
  Book(pod, nullptr);
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kPreparing);
  Prepare(pod);
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(pod).name.name, "P");
}

// DRA-065
TEST_F(PrepareTest, AReadyPodNeedsNothing) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  AnswerAll();
  const state::State before = state();
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_EQ(Book(p_, nullptr).kind, Kind::kAdmit);
  EXPECT_TRUE(state() == before);
}

// Once Ready, only the ledger counts: a changed spec is not looked at.
TEST_F(PrepareTest, AReadyPodIgnoresANewPlan) {
  objects_ = SnapshotOf({ClaimForP(), ClaimForP("D")});
  Prepare(p_);
  AnswerAll();
  const state::State before = state();
  const Pod changed = PodBuilder("P").Claim("c1", "D").Container("other");
  EXPECT_EQ(Prepare(changed).kind, Kind::kAdmit);
  EXPECT_TRUE(state() == before);
}

// DRA-066
TEST_F(PrepareTest, ASecondPodOnAPreparedClaimNeedsNoCall) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  Prepare(p_);
  AnswerAll();
  Prepare(q_);
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_THAT(PodsOf("u-C"), UnorderedElementsAre("u-P", "u-Q"));
  EXPECT_EQ(PodOf(q_).phase, PodPhase::kReady);
  EXPECT_EQ(CdiOf(q_, "c"), CdiOf(p_, "c"));
}

// Two pods join one call.
TEST_F(PrepareTest, ASecondPodJoinsAClaimThatIsBeingPrepared) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  Prepare(p_);
  Prepare(q_);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  Answers(kDriver, {"u-C"});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(q_).phase, PodPhase::kReady);
}

// DRA-067
TEST_F(PrepareTest, AClaimThatNoContainerUsesIsPreparedAllTheSame) {
  objects_ = SnapshotOf({ClaimForP()});
  const Pod pod = PodBuilder().Claim("c1", "C").Container("c");
  Prepare(pod);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  AnswerAll();
  EXPECT_THAT(CdiOf(pod, "c"), IsEmpty());
}

// DRA-068
TEST_F(PrepareTest, OnlyTheNewOneOfTwoClaimsIsDue) {
  objects_ = SnapshotOf({ClaimForP("A").For("u-Q", "Q"),
                         ClaimBuilder("B").From(kDriver).For("u-Q", "Q")});
  Prepare(PodWith("P", "A"));
  AnswerAll();
  const Pod q =
      PodBuilder("Q").Claim("c1", "A").Claim("c2", "B").Container("c");
  Prepare(q);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-B"}}}));
  AnswerAll();
  EXPECT_EQ(PodOf(q).phase, PodPhase::kReady);
}

// DRA-069
TEST_F(PrepareTest, TwoClaimsOfOneDriverAreDueTogether) {
  objects_ = SnapshotOf({ClaimForP("A"), ClaimForP("B")});
  Prepare(PodBuilder().Claim("c1", "A").Claim("c2", "B"));
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-A", "u-B"}}}));
}

// DRA-070
TEST_F(PrepareTest, EachDriverOfAClaimIsDueAndKeptApart) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  Prepare(p_);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}, {kOtherDriver, {"u-C"}}}));
  Answers(kOtherDriver, {"u-C"});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  Answers(kDriver, {"u-C"});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).devices.size(), 1u);
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kOtherDriver).devices.size(), 1u);
  EXPECT_THAT(CdiOf(p_, "c"),
              ElementsAre("d.example.com/x=u-C", "e.example.com/x=u-C"));
}

// DRA-071
TEST_F(PrepareTest, WaitsForAnOlderClaimOfTheSameName) {
  objects_ = SnapshotOf({ClaimForP().Uid("old")});
  Prepare(p_);
  AnswerAll();
  objects_ = SnapshotOf({ClaimBuilder("C").From(kDriver).For("u-Q", "Q")});
  const state::State before = state();
  const Verdict verdict = Prepare(q_);
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ClaimRecreated");
  EXPECT_THAT(verdict.message,
              HasSubstr("old ResourceClaim with same name C and different UID "
                        "old still exists"));
  EXPECT_THAT(verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "ns/C"}));
  EXPECT_TRUE(state() == before);
}

// DRA-072, improved: a pod of which one claim cannot be had books none.
TEST_F(PrepareTest, OneClaimThatMustWaitHoldsUpTheOthers) {
  objects_ = SnapshotOf({ClaimForP("B").Uid("old")});
  Prepare(PodWith("P", "B"));
  AnswerAll();
  objects_ = SnapshotOf({ClaimBuilder("A").From(kDriver).For("u-Q", "Q"),
                         ClaimBuilder("B").From(kDriver).For("u-Q", "Q")});
  const state::State before = state();
  EXPECT_THAT(
      Prepare(PodBuilder("Q").Claim("c1", "A").Claim("c2", "B")).message,
      HasSubstr("different UID old still exists"));
  EXPECT_FALSE(Knows("u-A"));
  EXPECT_TRUE(state() == before);
}

// DRA-073
TEST_F(PrepareTest, TheSpecialClaimIsPreparedAsAnyOther) {
  objects_ = SnapshotOf({ClaimForP("S")});
  const Pod pod = PodBuilder()
                      .Container("c")
                      .Requests("example.com/gpu")
                      .SpecialClaim("S")
                      .Maps("c", "example.com/gpu", "r");
  Prepare(pod);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-S"}}}));
  AnswerAll();
  ASSERT_THAT(CdiOf(pod, "c"), ElementsAre("d.example.com/x=u-S"));
  EXPECT_EQ(
      PodOf(pod).answer->containers[0].cdi_devices[0].origin,
      (DeviceOrigin{"S", "r", kDriver, "pool-1", "dev-1", "example.com/gpu"}));
}

// DRA-074
TEST_F(PrepareTest, WithTheGateOffTheSpecialClaimIsIgnored) {
  options_.extended_resources = false;
  objects_ = SnapshotOf({ClaimForP("S")});
  const Pod pod = PodBuilder().Container("c").SpecialClaim("S");
  Prepare(pod);
  EXPECT_THAT(state().claims, IsEmpty());
  EXPECT_EQ(PodOf(pod).phase, PodPhase::kReady);
  EXPECT_FALSE(Release(pod));
}

// DRA-075
TEST_F(PrepareTest, TheShareIdIsKept) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  auto device = Prepared("dev-1", {"cdi.example.com/x=1"});
  device.share_id = "share-7";
  Answers(kDriver, {{ClaimUid{"u-C"}, {device}}});
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).devices[0].share_id, "share-7");
}

// DRA-076 and DRA-077, improved: only the driver that failed is asked again,
// and each driver's devices are there once.
TEST_F(PrepareTest, OnlyTheDriverThatFailedIsDueAgain) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  Prepare(p_);
  Answers(kDriver, {"u-C"});
  Prepare(p_);
  EXPECT_EQ(ToPrepare(), (Calls{{kOtherDriver, {"u-C"}}}));
  Answers(kOtherDriver, {"u-C"});
  EXPECT_THAT(CdiOf(p_, "c"),
              ElementsAre("d.example.com/x=u-C", "e.example.com/x=u-C"));
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).devices.size(), 1u);
}

TEST_F(PrepareTest, ASecondAnswerDoesNotReplaceTheFirst) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  Answers(kDriver, {"u-C"});
  const state::State before = state();
  Answers(kDriver, {{ClaimUid{"u-C"}, {Prepared("dev-2", {"a.b/c=d"})}}});
  EXPECT_TRUE(state() == before);
}

// DRA-078
TEST_F(PrepareTest, AdministrativeAccessIsPreparedAsAnyOther) {
  objects_ = SnapshotOf({ClaimForP().AdminAccess()});
  Prepare(p_);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
}

// DRA-082
TEST_F(PrepareTest, WaitsWhileTheClaimIsBeingUnprepared) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  Prepare(p_);
  AnswerAll();
  Release(p_);
  const state::State before = state();
  const Verdict verdict = Prepare(q_);
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ClaimBeingUnprepared");
  EXPECT_THAT(verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "ns/C"}));
  EXPECT_TRUE(state() == before);

  Unprepared(kDriver, {"u-C"});
  EXPECT_EQ(Prepare(q_).kind, Kind::kAdmit);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
}

// DRA-105
TEST_F(PrepareTest, ARecreatedClaimIsHadOnceTheOldOneIsGone) {
  objects_ = SnapshotOf({ClaimForP().Uid("old")});
  Prepare(p_);
  AnswerAll();
  objects_ =
      SnapshotOf({ClaimBuilder("C").Uid("new").From(kDriver).For("u-Q", "Q")});
  EXPECT_THAT(Prepare(q_).message, HasSubstr("different UID old"));
  Release(p_);
  EXPECT_THAT(Prepare(q_).message, HasSubstr("different UID old"));
  AnswerAll();
  EXPECT_EQ(Prepare(q_).kind, Kind::kAdmit);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"new"}}}));
}

TEST_F(PrepareTest, APodThatIsNotKnownNeedsAPlan) {
  const auto booked = BookPod(state(), IdentityOf(p_), 1, nullptr, "boot-1");
  EXPECT_THAT(booked, StatusIs(absl::StatusCode::kNotFound,
                               HasSubstr("pod 'ns/P' with UID 'u-P'")));
}

TEST_F(PrepareTest, AWaitingPodNeedsAPlanAndKeepsWhenItWasFirstSeen) {
  ledger_.Take(RecordSeen(state(), IdentityOf(p_), 77, "waits"));
  EXPECT_THAT(BookPod(state(), IdentityOf(p_), 1, nullptr, "boot-1"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(RecordSeen(state(), IdentityOf(p_), 99, "waits").changes.empty());
  objects_ = SnapshotOf({ClaimForP()});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_EQ(PodOf(p_).first_seen_ms, 77);
  EXPECT_EQ(PodOf(p_).first_seen_seq, 1u);
}

TEST_F(PrepareTest, ARejectedPodIsNeverBooked) {
  const Verdict verdict{Kind::kReject, "InvalidPod", "why", {}};
  const auto rejected = RejectPod(state(), IdentityOf(p_), 5, verdict);
  ASSERT_THAT(rejected, IsOk());
  ledger_.Take(*rejected);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kRejected);
  EXPECT_EQ(PodOf(p_).reason, "InvalidPod");
  const PodPlan plan;
  EXPECT_THAT(BookPod(state(), IdentityOf(p_), 1, &plan, "boot-1"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("pod 'ns/P' is rejected: why")));
  // Final: a second verdict changes nothing.
  const auto again = RejectPod(state(), IdentityOf(p_), 5,
                               {Kind::kReject, "Other", "other", {}});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->changes.empty());
}

TEST_F(PrepareTest, APodThatHoldsClaimsCannotBeRejected) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  EXPECT_THAT(
      RejectPod(state(), IdentityOf(p_), 5, {Kind::kReject, "", "", {}}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("holds 1 claim and")));
}

TEST_F(PrepareTest, APodBeingReleasedIsNotBooked) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  Release(p_);
  const PodPlan plan;
  EXPECT_THAT(BookPod(state(), IdentityOf(p_), 1, &plan, "boot-1"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is being released")));
}

// The allocation of a claim in use does not change. What a file says all the
// same must not add a driver under a pod that is Ready.
TEST_F(PrepareTest, WaitsWhenTheAllocationOfAHeldClaimNamesOtherDrivers) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  Prepare(p_);
  AnswerAll();
  const state::State before = state();
  for (const ResourceClaim& changed :
       {ResourceClaim(ClaimBuilder("C").From(kOtherDriver).For("u-Q", "Q")),
        ResourceClaim(ClaimForP().From(kOtherDriver).For("u-Q", "Q")),
        ResourceClaim(ClaimBuilder("C").For("u-Q", "Q"))}) {
    objects_ = SnapshotOf({changed});
    const Verdict verdict = Prepare(q_);
    EXPECT_EQ(verdict.kind, Kind::kWait);
    EXPECT_EQ(verdict.reason, "ClaimAllocationChanged");
    EXPECT_TRUE(state() == before);
  }
}

// The old boot's answers are void for all claims of the pod.
TEST_F(PrepareTest, AfterARebootEveryDriverIsDueAgain) {
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver)});
  Prepare(p_);
  AnswerAll();
  ledger_.Reboot("boot-2");
  EXPECT_EQ(Book(p_, nullptr).kind, Kind::kAdmit);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_EQ(PodOf(p_).answer, nullptr);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}, {kOtherDriver, {"u-C"}}}));
  Answers(kDriver, {{ClaimUid{"u-C"}, {Prepared("dev-1", {"a.b/c=new"})}}});
  Answers(kOtherDriver, {{ClaimUid{"u-C"}, {}}});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(p_).boot_id, "boot-2");
  EXPECT_THAT(CdiOf(p_, "c"), ElementsAre("a.b/c=new"));
}

TEST_F(PrepareTest, AfterARebootTwoPodsOfAClaimPrepareItOnce) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  Prepare(p_);
  Prepare(q_);
  AnswerAll();
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  AnswerAll();
  EXPECT_EQ(PodOf(p_).boot_id, "boot-2");
  EXPECT_EQ(PodOf(q_).boot_id, "boot-1");
  Book(q_, nullptr);
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(PodOf(q_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(q_).boot_id, "boot-2");
}

TEST_F(PrepareTest, AnAnswerOfADriverThatWasNotAskedIsDropped) {
  objects_ = SnapshotOf({ClaimForP()});
  Prepare(p_);
  const state::State before = state();
  Answers(kOtherDriver, {"u-C"});
  Answers(kDriver, {"u-unknown"});
  EXPECT_TRUE(state() == before);
}

TEST_F(PrepareTest, DecisionsTellWhomTheyConcern) {
  objects_ = SnapshotOf({ClaimForP()});
  const PlanResult planned = PlanPod(p_, objects_, {});
  const auto booked =
      BookPod(state(), IdentityOf(p_), 1, &planned.plan, "boot-1");
  ASSERT_THAT(booked, IsOk());
  EXPECT_EQ(booked->decision.kind, state::DecisionKind::kPrepareIntent);
  EXPECT_THAT(booked->decision.pods, ElementsAre(NameOf("P")));
  EXPECT_THAT(booked->decision.claims, ElementsAre(NameOf("C")));
}

}  // namespace
}  // namespace devmgr::claim
