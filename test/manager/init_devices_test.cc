// SPDX-License-Identifier: Apache-2.0
//
// W-14: devices that only init containers had are given back when these have
// ended, and got anew should they run again.
#include "manager/device_fixture.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// Its init container `i` wants `init` GPUs, its container `c` wants `app`.
std::string PodWithInit(const std::string& name, int init, int app) {
  return DevicePod(name, {{kGpu, app}},
                   "  initContainers:\n" + ContainerYaml("i", {{kGpu, init}}));
}

class InitDevicesTest : public DeviceNodeTest {
 protected:
  /// Pod `p` is Ready: `i` has 0 and 1, `c` has taken 0 over.
  void StartWithThree() {
    node_.Start();
    node_.plugins.Serve(kGpu, 3);
    node_.Publish(PodWithInit("p", 2, 1));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  }
  absl::Status End(const std::string& pod) {
    return node_.manager().ReleaseInitContainers(node_.UidOf(pod));
  }
  absl::Status Begin(const std::string& container) {
    return node_.manager().BeforeContainerStart(node_.UidOf("p"), container);
  }
  std::vector<ResourceDevices> HeldBy(const std::string& container) {
    return *node_.manager().View()->HeldDevices(node_.UidOf("p"), container);
  }
};

TEST_F(InitDevicesTest, AnotherPodGetsWhatNobodyTookOver) {
  StartWithThree();
  const std::string p = PodWithInit("p", 2, 1);
  node_.Publish(p + DevicePod("q", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitForReason("q", "NotEnoughFreeDevices"));
  ASSERT_THAT(End("p"), IsOk());
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(Held("q", kGpu), UnorderedElementsAre("1", "2"));
  EXPECT_THAT(MessagesOf("DevicesReleased"),
              ElementsAre(AllOf(HasSubstr("'1'"), HasSubstr(kGpu))));
  EXPECT_THAT(node_.Resolve("p", "i"),
              ElementsAre(HasSubstr("gave its devices back")));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  EXPECT_THAT(HeldBy("i"), IsEmpty());
  EXPECT_THAT(HeldBy("c"), ElementsAre(ResourceDevices{kGpu, {{"0", {}}}}));
  EXPECT_THAT(End("p"), IsOk()) << "as often as one likes";
}

TEST_F(InitDevicesTest, AnInitContainerThatRunsAgainGetsDevicesFirst) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.plugins.Report(kGpu, {{"0", device::Health::kHealthy, {}},
                              {"2", device::Health::kHealthy, {}}});
  ASSERT_THAT(Begin("i"), IsOk());
  EXPECT_THAT(node_.Resolve("p", "i"),
              ElementsAre("example.com/gpu=0", "example.com/gpu=2"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
}

TEST_F(InitDevicesTest, WithoutFreeOnesItCannotStartAndLeavesNothingBehind) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  const std::string p = PodWithInit("p", 2, 1);
  node_.Publish(p + DevicePod("q", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(Begin("i"), StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("0 of 3 free")));
  node_.Publish(p);
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  ASSERT_THAT(Begin("i"), IsOk());
  EXPECT_THAT(HeldBy("i")[0].devices, SizeIs(2));
}

TEST_F(InitDevicesTest, ARestartOfOursChangesNothing) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.Restart();
  node_.plugins.Serve(kGpu, 3);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(HeldBy("i"), IsEmpty());
  const std::string p = PodWithInit("p", 2, 1);
  node_.Publish(p + DevicePod("q", {{kGpu, 2}}));
  EXPECT_TRUE(node_.WaitFor("q", PodState::kReady));
}

TEST_F(InitDevicesTest, AfterARebootTheyGetDevicesAnewWithTheirPod) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.Reboot();
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  node_.plugins.Serve(kGpu, 1);
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughDevices"));
  node_.plugins.Serve(kGpu, 2);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "i"),
              ElementsAre("example.com/gpu=0", "example.com/gpu=1"));
}

TEST_F(InitDevicesTest, APluginThatRefusesLeavesItAsItWas) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.plugins.Answer(kGpu, [](const auto&) {
    return absl::StatusOr<device::ContainerEdits>(absl::InternalError("no"));
  });
  EXPECT_THAT(Begin("i"), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(HeldBy("i"), IsEmpty());
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
}

TEST_F(InitDevicesTest, NobodyIsToldToStartBeforeThePluginHasAnswered) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.plugins.Hold(kGpu);
  const PodUid p = node_.UidOf("p");
  const std::size_t calls = node_.plugins.calls().size();
  Mailbox<absl::Status> ends;
  const auto put = [&](absl::Status status) { ends.Put(std::move(status)); };
  const OperationId first =
      node_.manager().StartBeforeContainerStart(p, "i", put);
  ASSERT_TRUE(node_.plugins.WaitForCalls(calls + 1));
  // The runtime is impatient.
  node_.manager().Cancel(first);
  EXPECT_THAT(*ends.Take(), StatusIs(absl::StatusCode::kCancelled));
  node_.manager().StartBeforeContainerStart(p, "i", put);
  node_.Sync();
  EXPECT_EQ(ends.size(), 0u);
  node_.plugins.Let(kGpu);
  EXPECT_THAT(*ends.Take(), IsOk());
  EXPECT_THAT(node_.Resolve("p", "i"), SizeIs(2));
}

// As without it: what runs goes on, and is started again on what it has.
TEST_F(InitDevicesTest, WhatOtherContainersHaveMayBeBroken) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.plugins.Report(kGpu, {{"0", device::Health::kUnhealthy, {}},
                              {"1", device::Health::kHealthy, {}},
                              {"2", device::Health::kHealthy, {}}});
  ASSERT_THAT(Begin("i"), IsOk());
  EXPECT_THAT(node_.Resolve("p", "i"),
              ElementsAre("example.com/gpu=1", "example.com/gpu=2"));
}

// Who waits for what the pod holds must not keep it from going on.
TEST_F(InitDevicesTest, WhoWaitsForThePodDoesNotKeepItFromStarting) {
  node_.options.policies.starvation_limit = std::chrono::milliseconds(1);
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.Publish(PodWithInit("p", 2, 1) +
                DevicePod("q", {{kGpu, 3}}, "  priority: 9\n"));
  ASSERT_TRUE(node_.WaitForReason("q", "NotEnoughFreeDevices"));
  EXPECT_THAT(Begin("i"), IsOk());
}

// A host that tries again from its callback, at the end of everything.
TEST_F(InitDevicesTest, AtTheEndNothingNewBegins) {
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  node_.plugins.Hold(kGpu);
  const PodUid p = node_.UidOf("p");
  const std::size_t calls = node_.plugins.calls().size();
  int ends = 0;
  DeviceManager& manager = node_.manager();
  std::function<void(absl::Status)> again = [&](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
    if (++ends < 3) manager.StartBeforeContainerStart(p, "i", again);
  };
  manager.StartBeforeContainerStart(p, "i", again);
  ASSERT_TRUE(node_.plugins.WaitForCalls(calls + 1));
  node_.Stop();
  EXPECT_GE(ends, 1);
}

TEST_F(InitDevicesTest, TheKubeletKeepsThem) {
  node_.options.policies.profile = Profile::kStrictKubelet;
  StartWithThree();
  ASSERT_THAT(End("p"), IsOk());
  EXPECT_THAT(HeldBy("i")[0].devices, SizeIs(2));
  EXPECT_THAT(node_.Resolve("p", "i"), SizeIs(2));
}

}  // namespace
}  // namespace devmgr
