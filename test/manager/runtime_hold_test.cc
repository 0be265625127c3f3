// SPDX-License-Identifier: Apache-2.0
//
// A pod that is gone keeps its devices until nothing of it runs, where the
// manager has a source of what runs.
#include <devmgr/device_manager.h>

#include <string>

#include "manager/manager_fixture.h"
#include "support/scripted_runtime.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = RuntimeContainer::State;

class RuntimeHoldTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.runtime = &runtime_;
  }
  void TearDown() override { node_.Stop(); }

  static std::string TextOfPod(const std::string& extra = "") {
    return ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
           PodYaml("p", "u-p", {"c1"}, extra);
  }
  /// Starts, and has a pod that is Ready and runs.
  void StartWithPod() {
    node_.Start();
    runtime_.Runs({{"u-p", State::kRunning}});
    node_.Publish(TextOfPod());
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  }
  bool IsPrepared() const {
    return node_.drivers.calls() ==
           std::vector<FakeDrivers::Call>{Prepare(kDriver, {"c1"})};
  }

  ScriptedRuntime runtime_;
};

TEST_F(RuntimeHoldTest, ADeletedPodStaysPreparedUntilItsContainerHasEnded) {
  StartWithPod();
  EXPECT_TRUE(runtime_.expects);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  const PodInfo pod = node_.PodNamed("p");
  EXPECT_EQ(pod.state, PodState::kReady);
  EXPECT_EQ(pod.message,
            "waits until container 'c' of the pod has ended, which runs since "
            "1970-01-01T00:01:30Z");
  EXPECT_THAT(pod.waiting_for, ElementsAre(WaitingFor{
                                   WaitingFor::Kind::kRuntime, "of the test"}));
  EXPECT_TRUE(IsPrepared());
  // Others end; it does not.
  runtime_.Runs({{"u-p", State::kRunning}, {"u-q", State::kExited}});
  node_.Sync();
  EXPECT_TRUE(IsPrepared());
  runtime_.Runs({{"u-p", State::kExited}});
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
  EXPECT_TRUE(node_.WaitUntil("no pod is expected to run",
                              [this] { return !runtime_.expects; }));
}

TEST_F(RuntimeHoldTest, AFinishedPodIsHeldTheSameWay) {
  StartWithPod();
  node_.Publish(TextOfPod("status: {phase: Succeeded}\n"));
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  EXPECT_TRUE(IsPrepared());
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

TEST_F(RuntimeHoldTest, NotToKnowWhatRunsHoldsTheRelease) {
  StartWithPod();
  runtime_.Runs({});
  runtime_.IsUnknown("connection refused");
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "RuntimeUnknown"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("what runtime of the test runs, since "
                        "1970-01-01T02:00:00Z: connection refused"));
  EXPECT_TRUE(IsPrepared());
  const auto known = node_.manager().View()->Node().runtime;
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->source, "runtime of the test");
  EXPECT_FALSE(known->known);
  EXPECT_EQ(known->reason, "connection refused");
  runtime_.Runs({{"u-p", State::kRunning}});
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// A snapshot from before the pod was deleted proves nothing.
TEST_F(RuntimeHoldTest, TheRuntimeIsAskedAnewBeforeTheRelease) {
  StartWithPod();
  runtime_.answers_late = true;
  runtime_.Runs({});
  node_.Publish("");
  const auto done = runtime_.refreshes.Take();
  ASSERT_TRUE(done.has_value());
  node_.Sync();
  EXPECT_TRUE(IsPrepared());
  // It had begun a moment ago.
  runtime_.Runs({{"u-p", State::kRunning}});
  (*done)();
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  runtime_.Runs({{"u-p", State::kExited}});
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_EQ(runtime_.refreshes.size(), 0u);
}

TEST_F(RuntimeHoldTest, ARuntimeThatHangsIsNamedWhileItIsAsked) {
  StartWithPod();
  runtime_.answers_late = true;
  runtime_.Runs({});
  node_.Publish("");
  const auto done = runtime_.refreshes.Take();
  ASSERT_TRUE(done.has_value());
  ASSERT_TRUE(node_.WaitForReason("p", "RuntimeUnknown"));
  const PodInfo pod = node_.PodNamed("p");
  EXPECT_THAT(pod.message,
              HasSubstr("waits until runtime of the test has answered what it "
                        "runs, for which it is asked since "));
  EXPECT_THAT(pod.waiting_for, ElementsAre(WaitingFor{
                                   WaitingFor::Kind::kRuntime, "of the test"}));
  EXPECT_TRUE(IsPrepared());
  (*done)();
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

TEST_F(RuntimeHoldTest, ARuntimeThatStopsAnsweringIsAnEvent) {
  StartWithPod();
  runtime_.IsUnknown("connection refused");
  EXPECT_TRUE(node_.WaitUntil("an event", [this] {
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == "RuntimeUnknown") return true;
    }
    return false;
  }));
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitUntil("its end", [this] {
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == "RuntimeKnown") return true;
    }
    return false;
  }));
}

TEST_F(RuntimeHoldTest, APodThatIsWantedAgainMeanwhileStaysReady) {
  StartWithPod();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  node_.Publish(TextOfPod());
  EXPECT_TRUE(node_.WaitUntil("nothing is waited for", [this] {
    return node_.PodNamed("p").waiting_for.empty();
  }));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  runtime_.Runs({});
  node_.Sync();
  EXPECT_TRUE(IsPrepared());
}

TEST_F(RuntimeHoldTest, ItHoldsOverARestart) {
  StartWithPod();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  node_.Restart();
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  EXPECT_TRUE(IsPrepared());
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// It was told to release them; and it holds nothing that could be in use.
TEST_F(RuntimeHoldTest, AnOperatorAndAPodThatHoldsNothingAreNotHeld) {
  StartWithPod();
  node_.Publish(TextOfPod() + PodYaml("q", "u-q", {}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  runtime_.IsUnknown("it has gone");
  node_.Publish(TextOfPod());
  EXPECT_TRUE(node_.WaitUntilGone("q"));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "RuntimeUnknown"));
  EXPECT_TRUE(node_.manager().UnpreparePod({"u-p"}).ok());
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

TEST_F(RuntimeHoldTest, WithoutASourceThereIsNothingToShow) {
  node_.runtime = nullptr;
  node_.Start();
  EXPECT_FALSE(node_.manager().View()->Node().runtime.has_value());
  node_.Publish(TextOfPod());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

}  // namespace
}  // namespace devmgr
