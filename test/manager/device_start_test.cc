// SPDX-License-Identifier: Apache-2.0
//
// Pods that have devices of plugins: over restarts and reboots of the manager,
// and before their containers start.
#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// W-02, W-34: a Ready pod resolves before its plugin is back.
TEST_F(DeviceNodeTest, ARestartDisturbsNobody) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2, {.pre_start_required = true});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  // Its start waits for the plugin, which must be asked.
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p"), "c"),
              StatusIs(absl::StatusCode::kUnavailable));
  node_.plugins.Serve(kGpu, 2, {.pre_start_required = true});
  node_.Publish(DevicePod("p", {{kGpu, 1}}) + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(Held("q", kGpu), ElementsAre("1"));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p"), "c"),
              IsOk());
}

// The plugin's answer was lost with the manager.
TEST_F(DeviceNodeTest, ARestartDuringAllocateBeginsAnew) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.Stop();
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  node_.plugins.Let(kGpu);
  node_.Start();
  EXPECT_THAT(MessagesOf("AllocateOutcomeUnknown"), SizeIs(1));
  node_.plugins.Serve(kGpu, 1);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.plugins.calls(), ElementsAre(Allocate(kGpu, {"0"}, "p"),
                                                 Allocate(kGpu, {"0"}, "p")));
}

// A reboot: what containers were given may not be there any more.
TEST_F(DeviceNodeTest, AfterARebootThePluginIsWaitedFor) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Reboot();
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre(HasSubstr("not back yet")));
  node_.plugins.Serve(kGpu, 1);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));  // It is not asked again.
}

// DP-077, DP-078: before each start, and only plugins that want it.
TEST_F(DeviceNodeTest, PluginsAreAskedBeforeAContainerStarts) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2, {.pre_start_required = true});
  node_.plugins.Serve(kNic, 1);
  node_.Publish(DevicePod("p", {{kGpu, 2}, {kNic, 1}}) + DevicePod("q", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  const PodUid pod = node_.UidOf("p");
  EXPECT_THAT(node_.manager().BeforeContainerStart(pod, "c"), IsOk());
  EXPECT_THAT(node_.plugins.calls(),
              Contains(FakePlugins::Call{
                  "PreStartContainer", kGpu, {"0", "1"}, "default/p", "c"}));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(3));
  node_.plugins.AnswerPreStart(kGpu, InternalError("reset failed"));
  EXPECT_THAT(node_.manager().BeforeContainerStart(pod, "c"),
              StatusIs(absl::StatusCode::kInternal, "reset failed"));
  EXPECT_THAT(node_.manager().BeforeContainerStart(pod, "x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'x'")));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("q"), "c"),
              IsOk());
  EXPECT_THAT(node_.manager().BeforeContainerStart(PodUid{"u-none"}, "c"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("u-none")));
}

// What was stored at the allocation decided, whatever plugin was there by then.
TEST_F(DeviceNodeTest, ThePluginThatIsThereDecidesOnPreStart) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1, {.pre_start_required = true});
  node_.plugins.Serve(kNic, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Serve(kNic, 1, {.pre_start_required = true});
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p"), "c"),
              IsOk());
  EXPECT_THAT(node_.plugins.calls(),
              Contains(FakePlugins::Call{
                  "PreStartContainer", kNic, {"0"}, "default/p", "c"}));
  EXPECT_THAT(node_.plugins.calls(),
              Not(Contains(FakePlugins::Call{
                  "PreStartContainer", kGpu, {"0"}, "default/p", "c"})));
}

// Nothing starts on what another boot prepared.
TEST_F(DeviceNodeTest, NoContainerStartsBeforeItsPodIsReadyInThisBoot) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Reboot();
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  EXPECT_THAT(
      node_.manager().BeforeContainerStart(node_.UidOf("p"), "c"),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("boot")));
}

}  // namespace
}  // namespace devmgr
