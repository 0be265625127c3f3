// SPDX-License-Identifier: Apache-2.0
//
// Preparing, sharing and releasing: which driver is asked for what, and how
// often.
#include <future>

#include "manager/manager_fixture.h"
#include "pods/call_queue.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// DRA-057, DRA-084
TEST_F(ManagerTest, PreparesOnceAndUnpreparesOnce) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  EXPECT_THAT(node_.store.Load().pods, IsEmpty());
}

TEST_F(ManagerTest, PodThatNeedsNothingIsReadyWithOneWrite) {
  node_.Start();
  node_.Publish(PodYaml("p", "u-p", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.store.appends(), 1);
  EXPECT_THAT(node_.Resolve("p", "c"), IsEmpty());
  EXPECT_THAT(node_.Resolve("p", "x"), ElementsAre(HasSubstr("no container")));
}

// Invariant 7: however many calls hang at however many drivers.
TEST_F(ManagerTest, PodThatNeedsNothingIsNeverDelayedByADriver) {
  constexpr int kOthers = 100;
  node_.drivers.Hold(kDriver);
  node_.drivers.Hold(kOther);
  node_.Start();
  std::string others;
  for (int i = 0; i < kOthers; ++i) {
    const std::string n = std::to_string(i);
    others += ClaimYaml("c" + n, "u-c" + n, {kDriver, kOther}, {"u-p" + n}) +
              PodYaml("p" + n, "u-p" + n, {"c" + n});
  }
  node_.Publish(others);
  ASSERT_TRUE(node_.WaitUntil("all are booked", [&] {
    return node_.manager().View()->Claims().size() == kOthers;
  }));
  // So many calls a driver has at once; the rest waits for these.
  constexpr std::size_t kCalls = 2 * pods::CallQueue::kCallsAtOnce;
  ASSERT_TRUE(node_.drivers.WaitForCalls(kCalls));
  const std::size_t decisions = node_.store.batches();
  node_.Publish(others + PodYaml("q", "u-q", {}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.Resolve("q", "c"), IsEmpty());
  node_.Publish(others);
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  // Booked and Ready in one decision, forgotten in another.
  EXPECT_EQ(node_.store.batches() - decisions, 2u);
  EXPECT_THAT(node_.drivers.calls(), SizeIs(kCalls));
  // Nor after a restart, with all that is still open.
  node_.drivers.Deregister(kDriver);
  node_.Restart();
  node_.Publish(others + PodYaml("r", "u-r", {}));
  ASSERT_TRUE(node_.WaitFor("r", PodState::kReady));
}

// Budget: the slowest driver and two syncs, admission included.
TEST_F(ManagerTest, PreparingTakesTwoWrites) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.store.appends(), 2);
}

// DRA-060
TEST_F(ManagerTest, DriversErrorIsShownAndRetried) {
  node_.drivers.Answer(kDriver, FailTimes(true, "c1", 1'000'000));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  // DRA-083: the kubelet's reason
  ASSERT_TRUE(node_.WaitForReason("p", "FailedPrepareDynamicResources"));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre(HasSubstr("prepare dynamic resources: "
                                    "NodePrepareResources failed for "
                                    "ResourceClaim c1: boom")));
  node_.drivers.Answer(kDriver, {});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// However much changes while its driver is asked, a pod is tried again at once
// when some of it is what it waits for.
TEST_F(ManagerTest, WhatChangesWhileADriverIsAskedIsNotMissed) {
  node_.options.retries.first = std::chrono::hours(1);
  node_.Start();
  for (const int others : {0, 1'100}) {
    const std::string name = "p" + std::to_string(others);
    node_.drivers.Answer(kDriver, FailTimes(true, "c-" + name, 1));
    node_.drivers.Hold(kDriver);
    const std::size_t calls = node_.drivers.calls().size();
    const std::string mine =
        ClaimYaml("c-" + name, "u-c-" + name, {kDriver}, {"u-" + name}) +
        PodYaml(name, "u-" + name, {"c-" + name});
    node_.Publish(mine);
    ASSERT_TRUE(node_.drivers.WaitForCalls(calls + 1));
    node_.drivers.Register(kDriver);
    for (int i = 0; i < others; ++i) {
      node_.Publish(mine + ClaimYaml("other-" + std::to_string(i), "u-other",
                                     {kOther}, {}));
      ASSERT_TRUE(node_.WaitUntil("it is seen", [&] {
        return node_.manager().Objects()->claims.contains(
            {"default", "other-" + std::to_string(i)});
      }));
    }
    node_.drivers.Let(kDriver);
    ASSERT_TRUE(node_.WaitFor(name, PodState::kReady));
  }
}

// Codes that mean "do not try again" between us do not from a driver.
TEST_F(ManagerTest, DriversCodeDoesNotEndTheRetries) {
  auto left = std::make_shared<int>(3);
  node_.drivers.Answer(kDriver, [left](bool, const dra::ClaimReference&) {
    if (--*left < 0) return absl::OkStatus();
    return FailedPreconditionError("the device is busy");
  });
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(4));
}

// DRA-062, improved: the retry asks only for the claim that failed.
TEST_F(ManagerTest, RetryAsksOnlyForTheClaimThatHasNoAnswer) {
  node_.drivers.Answer(kDriver, FailTimes(true, "c2", 1));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) +
                ClaimYaml("c2", "u-2", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1", "c2"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1", "c2"}),  // DRA-069
                          Prepare(kDriver, {"c2"})));
}

// DRA-070, DRA-076 and DRA-077, improved: each driver is asked until it

// answers, and no more.
TEST_F(ManagerTest, RetryAsksOnlyTheDriverThatFailed) {
  node_.drivers.Answer(kOther, FailTimes(true, "c1", 1));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-1", {kDriver, kOther}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kOther, {"c1"}),
                          Prepare(kOther, {"c1"})));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre("d.example.com/x=c1", "e.example.com/x=c1"));
}

// DRA-094, improved

// DRA-100
TEST_F(ManagerTest, UnprepareRetryAsksOnlyTheDriverThatFailed) {
  node_.drivers.Answer(kOther, FailTimes(false, "c1", 1));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-1", {kDriver, kOther}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  const auto calls = node_.drivers.calls();
  ASSERT_THAT(calls, SizeIs(5));
  EXPECT_EQ(calls.back(), Unprepare(kOther, {"c1"}));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
  EXPECT_THAT(node_.drivers.prepared(kOther), IsEmpty());
}

// DRA-063, improved: the pod waits for the driver, by name.
TEST_F(ManagerTest, WaitsForADriverThatIsNotThere) {
  node_.drivers.Deregister(kDriver);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitForReason("p", "DriverNotRegistered"));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kDriver, kDriver}));
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  node_.drivers.Register(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// DRA-047, DRA-048, DRA-051
TEST_F(ManagerTest, WaitsForTheClaimStepByStep) {
  node_.Start();
  const std::string pod = PodYaml("p", "u-p", {"c1"});
  node_.Publish(pod);
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotFound"));
  node_.Publish(pod + ClaimYaml("c1", "u-c", {kDriver}, {"u-q"}));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  node_.Publish(pod + ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// DRA-066, DRA-085, DRA-098
TEST_F(ManagerTest, SharedClaimIsPreparedOnceAndUnpreparedWithTheLast) {
  node_.Start();
  const std::string claim = ClaimYaml("c1", "u-c", {kDriver}, {"u-p", "u-q"});
  node_.Publish(claim + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(claim + PodYaml("p", "u-p", {"c1"}) +
                PodYaml("q", "u-q", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  EXPECT_THAT(node_.store.Load().claims.begin()->second->pods,
              ElementsAre(PodUid{"u-p"}, PodUid{"u-q"}));
  node_.Publish(claim + PodYaml("q", "u-q", {"c1"}));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  EXPECT_THAT(node_.Resolve("q", "c"), ElementsAre("d.example.com/x=c1"));
  node_.Publish(claim);
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
}

TEST_F(ManagerTest, APodThatADriverKeepsWaitingSaysWhichAndSinceWhen) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitForReason("p", "DriverAsked"));
  const PodInfo pod = node_.PodNamed("p");
  EXPECT_EQ(pod.state, PodState::kPreparing);
  EXPECT_THAT(pod.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kDriver, kDriver}));
  EXPECT_THAT(pod.message,
              AllOf(HasSubstr("DRA driver d.example.com was asked at 20"),
                    HasSubstr("to prepare ResourceClaim 'default/c1'")));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre(HasSubstr("d.example.com was asked at")));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.PodNamed("p").waiting_for, IsEmpty());
  node_.drivers.Hold(kDriver);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "DriverAsked"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("to unprepare"));
  node_.drivers.Let(kDriver);
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// Two pods on one unprepared claim join one call (kubelet: both call).
TEST_F(ManagerTest, TwoPodsJoinOneCall) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p", "u-q"}) +
                PodYaml("p", "u-p", {"c1"}) + PodYaml("q", "u-q", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kPreparing));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kPreparing));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

// DRA-067
TEST_F(ManagerTest, ClaimThatNoContainerUsesIsPrepared) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
                "spec:\n  containers: [{name: c}]\n"
                "  resourceClaims: [{name: a, resourceClaimName: c1}]\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  EXPECT_THAT(node_.Resolve("p", "c"), IsEmpty());  // DRA-116
}

// The kubelet fails for ever on this (DW-16).
TEST_F(ManagerTest, TwoPodClaimsMayNameOneClaim) {
  node_.Start();
  node_.Publish(
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
      "spec:\n  containers: [{name: c, resources: {claims: [{name: a}, {name: "
      "b}]}}]\n  resourceClaims: [{name: a, resourceClaimName: c1}, {name: b, "
      "resourceClaimName: c1}]\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
}

// DRA-052
TEST_F(ManagerTest, AllocationWithoutResultsNeedsNoDriver) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.store.Load().claims, SizeIs(1));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

// DRA-082, DRA-105 improved: the new pod waits instead of failing.
TEST_F(ManagerTest, RecreatedClaimWaitsForTheOldOne) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-old", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.drivers.Hold(kDriver);
  node_.Publish(ClaimYaml("c1", "u-new", {kDriver}, {"u-q"}) +
                PodYaml("q", "u-q", {"c1"}));
  ASSERT_TRUE(node_.WaitForReason("q", "ClaimRecreated"));
  EXPECT_THAT(node_.PodNamed("q").message,
              HasSubstr("old ResourceClaim with same name c1 and different "
                        "UID u-old still exists"));  // DRA-071
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-new"));
}

TEST_F(ManagerTest, PodOfTheSameNameWaitsForItsPredecessor) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-1", "u-2"}) +
                PodYaml("p", "u-1", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.drivers.Hold(kDriver);
  node_.Publish(ClaimYaml("c2", "u-d", {kDriver}, {"u-2"}) +
                PodYaml("p", "u-2", {"c2"}));
  ASSERT_TRUE(node_.WaitForReason("p", "PreviousPodReleasing"));
  EXPECT_EQ(node_.UidOf("p"), PodUid{"u-2"});  // a name means the newest
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c2"));
  EXPECT_THAT(node_.store.Load().pods, SizeIs(1));
}

// DRA-079
TEST_F(ManagerTest, CancelledPrepareKeepsTheReference) {
  node_.drivers.Hold(kDriver);
  node_.Start(false);
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  while (node_.manager().Objects()->claims.empty())
    node_.manager().View()->Node();
  ASSERT_TRUE(
      node_.manager()
          .AdmitPod(*node_.manager().Objects()->pods.at({"default", "p"}))
          .ok());
  std::promise<absl::Status> result;
  const OperationId id = node_.manager().StartPreparePod(
      PodUid{"u-p"},
      [&](const absl::Status& status) { result.set_value(status); });
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.manager().Cancel(id);
  EXPECT_EQ(result.get_future().get().code(), absl::StatusCode::kCancelled);
  const state::State state = node_.store.Load();
  ASSERT_NE(state.FindClaim(ClaimUid{"u-c"}), nullptr);
  EXPECT_THAT(state.FindClaim(ClaimUid{"u-c"})->pods,
              ElementsAre(PodUid{"u-p"}));
  EXPECT_EQ(state.FindClaim(ClaimUid{"u-c"})->drivers.at(kDriver).phase,
            state::DriverPhase::kPreparing);
}

TEST_F(ManagerTest, PodReleasedDuringPrepareIsUnpreparedAfterIt) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kPreparing));
  node_.Publish("");
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// Of two claims one stays: the operation ends all the same, and is tried again.
TEST_F(ManagerTest, UnprepareThatSucceedsInPartIsRetried) {
  node_.drivers.Answer(kDriver, FailTimes(false, "c1", 1));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) +
                ClaimYaml("c2", "u-2", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1", "c2"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1", "c2"}),
                          Unprepare(kDriver, {"c1", "c2"}),
                          Unprepare(kDriver, {"c1"})));
}

// Admitted side by side, both by what the ledger held then; the claim is
// another one by now.
TEST_F(ManagerTest, PodThatComesTooLateForAClaimIsKnownToWaitForIt) {
  node_.Start(false);
  const auto publish = [&](const std::string& claim_uid,
                           const std::string& pod) {
    node_.Publish(ClaimYaml("c1", claim_uid, {kDriver}, {"u-" + pod}) +
                  PodYaml(pod, "u-" + pod, {"c1"}));
    while (!node_.manager().Objects()->pods.contains({"default", pod})) {
      node_.manager().View()->Node();
    }
  };
  const auto admit = [&](const std::string& pod) {
    return node_.manager()
        .AdmitPod(*node_.manager().Objects()->pods.at({"default", pod}))
        .status();
  };
  publish("u-old", "p");
  ASSERT_TRUE(admit("p").ok());
  publish("u-new", "q");
  ASSERT_TRUE(admit("q").ok());
  publish("u-old", "p");
  ASSERT_TRUE(node_.manager().PreparePod(PodUid{"u-p"}).ok());
  publish("u-new", "q");
  EXPECT_EQ(node_.manager().PreparePod(PodUid{"u-q"}).code(),
            absl::StatusCode::kFailedPrecondition);
  const PodInfo late = node_.PodNamed("q");
  EXPECT_EQ(late.reason, "ClaimRecreated");
  EXPECT_THAT(late.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "default/c1"}));
}

// DRA-081
TEST_F(ManagerTest, ThirtyPodsInParallel) {
  node_.Start();
  std::string all;
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    all += ClaimYaml("c" + n, "u-c" + n, {kDriver, kOther}, {"u-p" + n}) +
           PodYaml("p" + n, "u-p" + n, {"c" + n});
  }
  node_.Publish(all);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(node_.WaitFor("p" + std::to_string(i), PodState::kReady));
  }
  node_.Publish("");
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(node_.WaitUntilGone("p" + std::to_string(i)));
  }
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

TEST_F(ManagerTest, WhatAPodWaitedForIsForgottenWhenItIsThere) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  const std::string pod = PodYaml("p", "u-p", {"c1"});
  node_.Publish(pod);
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotFound"));
  node_.Publish(pod + ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kPreparing));
  EXPECT_EQ(node_.PodNamed("p").reason, "DriverAsked");
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

}  // namespace
}  // namespace devmgr
