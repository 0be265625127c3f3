// SPDX-License-Identifier: Apache-2.0
//
// What is on disk is carried out, whoever has lost interest; what nobody was
// told of is found.
#include <atomic>
#include <future>

#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Failure = SharedStore::Failure;

class ReconcileTest : public ManagerTest {
 protected:
  const std::string objects_ =
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + PodYaml("p", "u-p", {"c1"});

  /// Pod `p` is Ready, and nobody drives it.
  void StartWithPod() {
    node_.Start();
    node_.Publish(objects_);
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Stop();
    node_.Start(/*with_actuator=*/false);
  }
  ::testing::AssertionResult WaitUntilUnprepared() {
    return node_.WaitUntil("the claim is unprepared", [&] {
      return node_.manager().View()->Claims().empty();
    });
  }
  std::vector<std::string> EventsAbout(const std::string& kind) {
    std::vector<std::string> reasons;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.object_kind == kind) reasons.push_back(event.reason);
    }
    return reasons;
  }
};

TEST_F(ReconcileTest, AnUnprepareThatIsCancelledAfterItsIntentIsCarriedOut) {
  StartWithPod();
  std::promise<absl::Status> result;
  node_.RunAndWait([&] {
    const OperationId id = node_.manager().StartUnpreparePod(
        PodUid{"u-p"},
        [&](const absl::Status& status) { result.set_value(status); });
    // It is submitted to the ledger, then cancelled before that can answer.
    node_.manager().Cancel(id);
  });
  EXPECT_THAT(result.get_future().get(),
              StatusIs(absl::StatusCode::kCancelled));
  ASSERT_TRUE(WaitUntilUnprepared());
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
  EXPECT_THAT(node_.manager().ReleasePod(PodUid{"u-p"}), IsOk());
}

// The write of the intent fails, but holds: whoever asked has heard an error.
TEST_F(ReconcileTest, AnIntentThatHoldsThoughItsWriteFailedIsCarriedOut) {
  StartWithPod();
  node_.store.FailReopen(true);
  node_.store.FailNext(Failure::kWritten);
  EXPECT_THAT(node_.manager().UnpreparePod(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(node_.drivers.prepared(kDriver), SizeIs(1));
  node_.store.FailReopen(false);
  // Any decision has the store opened again.
  EXPECT_THAT(node_.manager().ReleasePod(PodUid{"somebody"}), IsOk());
  ASSERT_TRUE(WaitUntilUnprepared());
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// Both the operation and the intent on disk could have it asked.
TEST_F(ReconcileTest, AnUnprepareThatIsWaitedForAsksItsDriverOnce) {
  StartWithPod();
  EXPECT_THAT(node_.manager().UnpreparePod(PodUid{"u-p"}), IsOk());
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
}

TEST_F(ReconcileTest, ADriverThatLeavesIsToldOnce) {
  node_.Start();
  node_.drivers.Register(kDriver);
  // Its connection ends, and then it is deregistered.
  node_.RunAndWait([&] {
    node_.drivers.Deregister(kDriver);
    node_.drivers.Deregister(kDriver);
  });
  node_.Sync();  // Both have been heard.
  EXPECT_THAT(EventsAbout("Plugin"),
              ElementsAre("DriverAvailable", "DriverGone"));
}

// In a rolling update the older instance leaves: nobody has to hear of that.
TEST_F(ReconcileTest, AnotherInstanceIsNoNewsOfItsDriver) {
  node_.Start();
  node_.drivers.Register(kDriver);
  node_.drivers.Register(kDriver);
  node_.drivers.Register(kDriver);
  node_.Sync();
  EXPECT_THAT(EventsAbout("Plugin"), ElementsAre("DriverAvailable"));
  for (const EventInfo& event : node_.manager().Events(0)) {
    EXPECT_EQ(event.count, 1u);
  }
}

class CountingObserver : public DeviceManagerObserver {
 public:
  void OnObjects() override { ++objects; }
  std::atomic<int> objects{0};
};

// Each of its connections was an event: a driver that flaps pushed all others
// out.
TEST_F(ReconcileTest, ADriverThatAnswersAgainWakesPodsAndIsNoEvent) {
  int wakes = 0;  // On the manager's thread.
  node_.on_wake = [&](const std::vector<WaitingFor>& changes) {
    wakes += static_cast<int>(changes.size());
  };
  node_.Start();
  for (int i = 0; i < 3; ++i) node_.drivers.Register(kDriver);
  node_.Sync();
  node_.RunAndWait([&] { EXPECT_EQ(wakes, 3); });
  EXPECT_THAT(EventsAbout("Plugin"), ElementsAre("DriverAvailable"));
  node_.Stop();
}

// The write of an identity fails, the object goes, and the write holds.
TEST_F(ReconcileTest, AnIdentityInDoubtGoesWithItsObject) {
  CountingObserver observer;
  node_.Start();
  node_.store.FailReopen(true);
  node_.store.FailNext(Failure::kWritten);
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\n"
      "spec: {containers: [{name: c}]}\n---\n");
  while (node_.manager().View()->Node().ledger_error.empty()) {
  }
  // When this is answered, the book knows that its write failed.
  EXPECT_THAT(node_.manager().ReleasePod(PodUid{"somebody"}),
              StatusIs(absl::StatusCode::kUnavailable));
  auto observation = node_.manager().Observe(observer);
  node_.Publish("");
  // Once for that, and once more because the write failed.
  ASSERT_TRUE(node_.WaitUntil("the book has looked again",
                              [&] { return observer.objects >= 2; }));
  observation.reset();
  node_.store.FailReopen(false);
  EXPECT_THAT(node_.manager().ReleasePod(PodUid{"somebody"}), IsOk());
  EXPECT_TRUE(node_.WaitUntil("its identity has gone", [&] {
    return node_.store.Load().identities.empty();
  }));
  EXPECT_GE(node_.store.Load().seq, 2u) << "it was there, and was erased";
  EXPECT_THAT(node_.store.Load().pods, IsEmpty());
}

// A pod that waits for a driver of whose coming nobody was told.
TEST_F(ReconcileTest, WhatNobodyWasWokenForIsDoneAfterTheNextEvent) {
  node_.options.retries.sweep = std::chrono::milliseconds(20);
  node_.options.policies.audit_wakeups = false;  // It would find just that.
  node_.drivers.Deregister(kDriver);
  node_.Start();
  node_.Publish(objects_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  node_.drivers.RegisterSilently(kDriver);
  // Something else happens.
  node_.drivers.Register("third.example.com");
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(ReconcileTest, ASweepTellsNothingTwice) {
  node_.options.retries.sweep = std::chrono::milliseconds(1);
  node_.Start();
  node_.Publish(
      objects_ +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, uid: u-bad}\nspec:\n"
      "  containers: [{name: c}]\n  resourceClaims: [{name: x}]\n---\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitUntil("both are told of",
                              [&] { return EventsAbout("Pod").size() == 2; }));
  const std::uint64_t decisions =
      node_.manager().View()->Node().ledger_sequence;
  for (int i = 0; i < 20; ++i) {
    node_.drivers.Register("third.example.com");
    std::promise<void> later;
    node_.RunAfter(std::chrono::milliseconds(2), [&] { later.set_value(); });
    later.get_future().get();
  }
  EXPECT_THAT(EventsAbout("Pod"),
              UnorderedElementsAre("Prepared", "InvalidPod"));
  EXPECT_EQ(node_.manager().View()->Node().ledger_sequence, decisions);
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
}

}  // namespace
}  // namespace devmgr
