// SPDX-License-Identifier: Apache-2.0
//
// How many writes a pod's life takes, and pods that end: unprepared and
// forgotten in one.
#include <atomic>
#include <future>

#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndPodTest : public DeviceNodeTest {
 protected:
  void SetUp() override { node_.drivers.Register(kDriver); }

  /// Pod `p` is Ready, and is not driven by an actuator.
  void StartWithPod() {
    node_.Start();
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Stop();
    node_.Start(/*with_actuator=*/false);
  }
  std::future<absl::Status> BeginEnd(OperationId* id = nullptr) {
    auto result = std::make_shared<std::promise<absl::Status>>();
    const OperationId started = node_.manager().StartEndPod(
        PodUid{"u-p"},
        [result](const absl::Status& status) { result->set_value(status); });
    if (id != nullptr) *id = started;
    return result->get_future();
  }
  ::testing::AssertionResult WaitUntilAsked() {
    return node_.WaitUntil("the driver is asked",
                           [&] { return node_.drivers.calls().size() == 2; });
  }
  std::vector<std::string> Decisions() {
    std::vector<std::string> kinds;
    const auto history = node_.manager().maintenance().History(0, 100);
    EXPECT_THAT(history, IsOk());
    for (const DecisionInfo& decision : *history) {
      kinds.emplace_back(decision.kind.name());
    }
    return kinds;
  }
};

TEST_F(EndPodTest, APodOfAPluginTakesTwoWritesAndOneToEnd) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  // The first one writes who serves that name, too.
  node_.Publish(DevicePod("first", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("first", PodState::kReady));
  const std::size_t before = node_.store.batches();
  node_.Publish(DevicePod("first", {{kGpu, 1}}) + DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.store.batches() - before, 2u);
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre("example.com/gpu=1", "example.com/gpu=2"));
  node_.Publish(DevicePod("first", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_EQ(node_.store.batches() - before, 3u);
}

TEST_F(EndPodTest, APodWithAClaimTakesFourWrites) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_EQ(node_.store.batches(), 4u);
  EXPECT_THAT(Decisions(), ElementsAre("PrepareIntent", "PrepareResult",
                                       "UnprepareIntent", "Release"));
  EXPECT_THAT(MessagesOf("Released"), ElementsAre("pod is released"));
}

TEST_F(EndPodTest, UnknownPodsAreFine) {
  node_.Start(/*with_actuator=*/false);
  EXPECT_THAT(node_.manager().EndPod(PodUid{"somebody"}), IsOk());
  EXPECT_EQ(node_.store.batches(), 0u);
}

TEST_F(EndPodTest, ADriverThatFailsIsAskedAgainByTheNextCall) {
  StartWithPod();
  node_.drivers.Answer(kDriver, FailTimes(false, "c1", 1));
  EXPECT_THAT(node_.manager().EndPod(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReleasing);
  EXPECT_THAT(node_.manager().EndPod(PodUid{"u-p"}), IsOk());
  EXPECT_THAT(node_.manager().View()->Pods(), IsEmpty());
  EXPECT_THAT(node_.manager().View()->Claims(), IsEmpty());
}

// What was asked for is carried out as far as it is on disk: the claim is
// unprepared. That the pod is forgotten was not on disk.
TEST_F(EndPodTest, WhenItIsCancelledThePodKeepsItsPlaceUntilTheNextCall) {
  StartWithPod();
  node_.drivers.Hold(kDriver);
  OperationId id = 0;
  auto result = BeginEnd(&id);
  ASSERT_TRUE(WaitUntilAsked());
  node_.manager().Cancel(id);
  EXPECT_THAT(result.get(), StatusIs(absl::StatusCode::kCancelled));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitUntil("the claim is unprepared", [&] {
    return node_.manager().View()->Claims().empty();
  }));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReleasing);
  EXPECT_THAT(node_.manager().EndPod(PodUid{"u-p"}), IsOk());
  EXPECT_THAT(node_.manager().View()->Pods(), IsEmpty());
}

TEST_F(EndPodTest, AnOperatorWhoDropsTheClaimEndsThePod) {
  StartWithPod();
  node_.drivers.Hold(kDriver);
  auto result = BeginEnd();
  ASSERT_TRUE(WaitUntilAsked());
  EXPECT_THAT(node_.manager().maintenance().ForceReleaseClaim({"default", "c1"},
                                                              "broken"),
              IsOk());
  EXPECT_THAT(result.get(), IsOk());
  EXPECT_THAT(node_.manager().View()->Pods(), IsEmpty());
  node_.drivers.Let(kDriver);
}

TEST_F(EndPodTest, AfterARestartInTheMiddleItGoesOn) {
  struct Gone : DeviceManagerObserver {
    void OnPod(const PodInfo& pod, bool is_gone) override {
      if (is_gone && pod.name.name == "p") seen = true;
    }
    std::atomic<bool> seen = false;
  } gone;
  StartWithPod();
  node_.drivers.Hold(kDriver);
  auto result = BeginEnd();
  ASSERT_TRUE(WaitUntilAsked());
  node_.Stop();
  EXPECT_THAT(result.get(), StatusIs(absl::StatusCode::kCancelled));
  node_.drivers.Let(kDriver);
  // Its source has the pod still, so that it comes back.
  node_.observers = {&gone};
  node_.Start();
  ASSERT_TRUE(node_.WaitUntil("p is gone", [&] { return bool{gone.seen}; }));
  node_.Stop();
}

}  // namespace
}  // namespace devmgr
