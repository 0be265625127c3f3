// SPDX-License-Identifier: Apache-2.0
//
// Pods that want devices of plugins: planned, reserved, allocated, committed;
// what they wait for; what becomes of them when something fails.
#include <fmt/core.h>

#include <future>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Pod> PodOf(const std::string& yaml) {
  return SnapshotOf(yaml).pods.begin()->second;
}

/// Its result when it is there.
std::future<absl::StatusOr<Verdict>> AdmitIn(TestNode& node, const Pod& pod,
                                             OperationId* id = nullptr) {
  auto result = std::make_shared<std::promise<absl::StatusOr<Verdict>>>();
  const OperationId started = node.manager().StartAdmitPod(
      pod, [result](auto verdict) { result->set_value(std::move(verdict)); });
  if (id != nullptr) *id = started;
  return result->get_future();
}

TEST_F(DeviceNodeTest, APodGetsItsDevices) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre("example.com/gpu=0", "example.com/gpu=1"));
  EXPECT_THAT(node_.plugins.calls(),
              ElementsAre(Allocate(kGpu, {"0", "1"}, "p")));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
  // W-12, W-13
  EXPECT_THAT(MessagesOf("DevicesReleased"),
              ElementsAre("2 devices of example.com/gpu are free again: '0', "
                          "'1'"));
}

// "all claims are prepared" was said of every pod.
TEST_F(DeviceNodeTest, ReadyIsToldByWhatThePodHas) {
  node_.drivers.Register(kDriver);
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  node_.Publish(DevicePod("one", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("one", PodState::kReady));
  node_.Publish(PodYaml("none", "u-none", {}));
  ASSERT_TRUE(node_.WaitFor("none", PodState::kReady));
  ASSERT_TRUE(node_.WaitUntilGone("one"));
  node_.Publish(ClaimYaml("c", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(MessagesOf("Prepared"), ElementsAre("all devices are allocated",
                                                  "the pod needs no devices",
                                                  "all claims are prepared"));
  EXPECT_THAT(MessagesOf("DevicesReleased"),
              ElementsAre("1 device of example.com/gpu is free again: '0'"));
}

// W-27, BO-107, BO-108: who comes first by name wins, and it is told.
TEST_F(DeviceNodeTest, WhatPluginsDisagreeOnIsTold) {
  node_.Start();
  for (const char* resource : {kGpu, kNic}) {
    node_.plugins.Serve(resource, 1);
    device::ContainerEdits edits;
    edits.env = {{"MODE", resource}};
    edits.devices = {{"/dev/x", std::string("/dev/of/") + resource, "rw"}};
    node_.plugins.Answer(resource, [=](const auto&) { return edits; });
  }
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto answer = node_.manager().ContainerDevicesOf(node_.UidOf("p"), "c");
  ASSERT_THAT(answer.status(), IsOk());
  EXPECT_THAT((*answer)->env, ElementsAre(NamedValue{"MODE", kGpu, kGpu}));
  EXPECT_THAT((*answer)->devices,
              ElementsAre(DeviceNode{"/dev/x", std::string("/dev/of/") + kGpu,
                                     "rw", kGpu}));
  EXPECT_THAT(MessagesOf("DeviceEditConflict"),
              ElementsAre(AllOf(HasSubstr("container 'c'"), HasSubstr("/dev/x"),
                                HasSubstr(kNic)),
                          AllOf(HasSubstr("container 'c'"), HasSubstr("MODE"),
                                HasSubstr(kNic))));
}

// W-27, for those who rather have no devices than half of what plugins want.
TEST_F(DeviceNodeTest, AConflictIsRefusedWhereThatIsAskedFor) {
  node_.options.device_plugins.refuse_edit_conflicts = true;
  node_.Start(/*with_actuator=*/false);
  for (const char* resource : {kGpu, kNic}) {
    node_.plugins.Serve(resource, 1);
    device::ContainerEdits edits;
    edits.env = {{"MODE", resource}};
    node_.plugins.Answer(resource, [=](const auto&) { return edits; });
  }
  const auto pod = PodOf(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  EXPECT_THAT(node_.manager().AdmitPod(*pod),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("container 'c'"), HasSubstr("MODE"))));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kNic}));
  EXPECT_THAT(Held("p", kGpu), IsEmpty());
  EXPECT_THAT(Held("p", kNic), IsEmpty());
}

// DP-099: all resources of a pod at once, and what each gives.
TEST_F(DeviceNodeTest, TheAnswersOfSeveralPluginsAreOne) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Serve(kNic, 1);
  device::ContainerEdits edits;
  edits.env = {{"NIC", "eth7"}};
  edits.mounts = {{"/etc/nic", "/run/nic", true}};
  edits.devices = {{"/dev/nic", "/dev/nic0", "rw"}};
  edits.annotations = {{"nic", "0"}};
  node_.plugins.Answer(kNic, [=](const auto&) { return edits; });
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto answer = node_.manager().ContainerDevicesOf(node_.UidOf("p"), "c");
  ASSERT_THAT(answer.status(), IsOk());
  EXPECT_THAT((*answer)->env, ElementsAre(NamedValue{"NIC", "eth7", kNic}));
  EXPECT_THAT((*answer)->mounts,
              ElementsAre(DeviceMount{"/etc/nic", "/run/nic", true, kNic}));
  EXPECT_THAT((*answer)->devices,
              ElementsAre(DeviceNode{"/dev/nic", "/dev/nic0", "rw", kNic}));
  EXPECT_THAT((*answer)->annotations,
              ElementsAre(NamedValue{"nic", "0", kNic}));
  EXPECT_THAT((*answer)->resources, ElementsAre(HeldResource{kGpu, {"0"}},
                                                HeldResource{kNic, {"0"}}));
}

// W-01: a pod that comes before its plugin is not lost.
TEST_F(DeviceNodeTest, APodWaitsForALatePlugin) {
  node_.Start();
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "ExtendedResourceNotMapped"));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  node_.plugins.Connect(kGpu);
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  node_.plugins.Report(kGpu, HealthyDevices(1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// A plugin may be connected before it has looked for its devices.
TEST_F(DeviceNodeTest, AFirstListWithoutDevicesIsSaidAndRejectsNoPod) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.plugins.Connect(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  node_.plugins.Report(kGpu, HealthyDevices(0));
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughDevices"));
  node_.plugins.Report(kGpu, HealthyDevices(1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(DeviceNodeTest, AWaitNamesTheHolderAndEndsWithHim) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  const std::string holder = DevicePod("a", {{kGpu, 2}});
  node_.Publish(holder);
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  node_.Publish(holder + DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("b", "NotEnoughFreeDevices"));
  EXPECT_THAT(node_.PodNamed("b").message, HasSubstr("'default/a'"));
  node_.Publish(DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(Held("b", kGpu), ElementsAre("0"));
}

TEST_F(DeviceNodeTest, UnhealthyDevicesAreNamedAndWaitedFor) {
  node_.Start();
  node_.plugins.Connect(kGpu);
  node_.plugins.Report(kGpu, {{"g", device::Health::kUnhealthy, {}}});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughHealthyDevices"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("g"));
  node_.plugins.Report(kGpu, {{"g", device::Health::kHealthy, {}}});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// W-11: two pods that want two resources in any order never block each other.
TEST_F(DeviceNodeTest, ThePodGetsAllOrNothing) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Serve(kNic, 0);
  node_.Publish(DevicePod("both", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitForReason("both", "NotEnoughDevices"));
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
  node_.Publish(DevicePod("both", {{kGpu, 1}, {kNic, 1}}) +
                DevicePod("gpu", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("gpu", PodState::kReady));
}

// DP-069, W-07: what fails is given back, and tried again.
TEST_F(DeviceNodeTest, AFailedAllocateFreesAllAndIsTriedAgain) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Serve(kNic, 1);
  node_.plugins.Answer(kNic, [](const auto&) {
    return absl::StatusOr<device::ContainerEdits>(InternalError("no carrier"));
  });
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "FailedAllocateDevices"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("no carrier"));
  node_.plugins.Answer(kNic, nullptr);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_THAT(MessagesOf("DevicesReleased"), IsEmpty());
}

// They were reserved, and given to no container: still those who wait for them
// go on, but that they are released is no event.
TEST_F(DeviceNodeTest, DevicesOfAFailedAllocateAreForThoseWhoWait) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Answer(kGpu, [](const auto&) {
    return absl::StatusOr<device::ContainerEdits>(InternalError("no power"));
  });
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.Publish(DevicePod("p", {{kGpu, 1}}) + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("q", "NotEnoughFreeDevices"));
  node_.Publish(DevicePod("q", {{kGpu, 1}}));
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitForReason("q", "FailedAllocateDevices"));
  node_.plugins.Answer(kGpu, nullptr);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(MessagesOf("DevicesReleased"), IsEmpty());
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_THAT(MessagesOf("DevicesReleased"),
              ElementsAre("1 device of example.com/gpu is free again: '0'"));
}

TEST_F(DeviceNodeTest, BelowASchedulerAFailedAllocateRejects) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Answer(kGpu, [](const auto&) {
    return absl::StatusOr<device::ContainerEdits>(InternalError("no power"));
  });
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "UnexpectedAdmissionError");
  EXPECT_EQ(node_.PodNamed("p").message,
            "Allocate failed due to no power, which is unexpected");
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
}

// A scheduler binds the next pod as soon as the last one is gone there.
TEST_F(DeviceNodeTest, BelowASchedulerTheNextPodWaitsForTheLastOnesRelease) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p0", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p0", PodState::kReady));
  for (int i = 1; i <= 5; ++i) {
    const std::string next = fmt::format("p{}", i);
    node_.Publish(DevicePod(next, {{kGpu, 1}}));
    ASSERT_TRUE(node_.WaitFor(next, PodState::kReady));
  }
}

TEST_F(DeviceNodeTest, BelowASchedulerTheWaitForAPluginEnds) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.options.policies.admission_wait = milliseconds(50);
  node_.Start();
  node_.plugins.Connect(kGpu);  // And tells nothing.
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("no healthy devices present"));
}

// What the kubelet does with a resource that it has never heard of.
TEST_F(DeviceNodeTest, TheStrictKubeletIgnoresUnknownResources) {
  node_.options.policies.profile = Profile::kStrictKubelet;
  node_.Start();
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), IsEmpty());
}

TEST_F(DeviceNodeTest, TheStrictKubeletRejectsAtOnce) {
  node_.options.policies.profile = Profile::kStrictKubelet;
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").message,
            "Allocate failed due to requested number of devices unavailable "
            "for example.com/gpu. Requested: 2, Available: 1, which is "
            "unexpected");
}

// DP-083, DP-084: the plugin's advice counts, as far as it can be used.
TEST_F(DeviceNodeTest, ThePluginIsAskedWhatItPrefers) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4, {.preferred_allocation = true});
  node_.plugins.AnswerPreferred(kGpu, [](const auto&) {
    return std::vector<DeviceId>{"unknown", "3", "1"};
  });
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1", "3"));
}

TEST_F(DeviceNodeTest, AHungPreferenceHoldsNothing) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2, {.preferred_allocation = true});
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// W-06: nobody gets what is being allocated.
TEST_F(DeviceNodeTest, ADeviceUnderWayIsNotFree) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("a", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.Publish(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("b", "NotEnoughFreeDevices"));
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
}

// W-10: a device that leaves the list while its plugin allocates it.
TEST_F(DeviceNodeTest, ADeviceThatVanishesMeanwhileIsReplaced) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.plugins.Report(kGpu, {{"1", device::Health::kHealthy, {}}});
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
}

// W-08: pods without devices pass while every plugin hangs.
TEST_F(DeviceNodeTest, AHungPluginDelaysNobodyElse) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Serve(kNic, 1);
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("hung", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.Publish(DevicePod("hung", {{kGpu, 1}}) + DevicePod("plain", {}) +
                DevicePod("nic", {{kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("plain", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("nic", PodState::kReady));
  EXPECT_NE(node_.PodNamed("hung").state, PodState::kReady);
}

// Devices were reserved and freed again for each attempt at a plugin in
// quarantine.
TEST_F(DeviceNodeTest, ACallThatWouldBeRefusedWritesNothing) {
  node_.Start(/*with_actuator=*/false);
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Refuse(kGpu, UnavailableError("it is in quarantine"));
  const auto pod = PodOf(DevicePod("p", {{kGpu, 1}}));
  const auto refused =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in quarantine"));
  EXPECT_THAT(node_.manager().AdmitPod(*pod), refused);
  const auto before = node_.manager().maintenance().History(0);
  ASSERT_THAT(before.status(), IsOk());
  EXPECT_THAT(node_.manager().AdmitPod(*pod), refused);
  EXPECT_THAT(*node_.manager().maintenance().History(0),
              SizeIs(before->size()));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  node_.plugins.Refuse(kGpu, absl::OkStatus());
  const auto verdict = node_.manager().AdmitPod(*pod);
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kAdmit);
}

// They plan before any of them has reserved.
TEST_F(DeviceNodeTest, ManyAtOnceDoNotChooseTheSame) {
  constexpr int kPods = 32;
  node_.Start(/*with_actuator=*/false);
  node_.plugins.Serve(kGpu, kPods);
  std::vector<std::future<absl::StatusOr<Verdict>>> verdicts;
  for (int i = 0; i < kPods; ++i) {
    const auto pod = PodOf(DevicePod("p" + std::to_string(i), {{kGpu, 1}}));
    verdicts.push_back(AdmitIn(node_, *pod));
  }
  for (auto& each : verdicts) {
    const auto verdict = each.get();
    ASSERT_THAT(verdict.status(), IsOk());
    EXPECT_EQ(verdict->kind, Verdict::Kind::kAdmit);
  }
  EXPECT_THAT(node_.plugins.calls(), SizeIs(kPods));
}

TEST_F(DeviceNodeTest, WhoAsksTwiceGetsOneAnswer) {
  node_.Start(/*with_actuator=*/false);
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Hold(kGpu);
  const auto pod = PodOf(DevicePod("p", {{kGpu, 1}}));
  OperationId id = 0;
  auto first = AdmitIn(node_, *pod, &id);
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  auto second = AdmitIn(node_, *pod);
  // One gives up, the other still wants it.
  node_.manager().Cancel(id);
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kCancelled));
  node_.plugins.Let(kGpu);
  const auto verdict = second.get();
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kAdmit);
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
}

TEST_F(DeviceNodeTest, WhatNobodyWantsAnyMoreIsGivenBack) {
  node_.Start(/*with_actuator=*/false);
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Hold(kGpu);
  OperationId id = 0;
  auto first = AdmitIn(node_, *PodOf(DevicePod("p", {{kGpu, 1}})), &id);
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.manager().Cancel(id);
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kCancelled));
  const auto other = PodOf(DevicePod("q", {{kGpu, 1}}));
  EXPECT_EQ(node_.manager().AdmitPod(*other)->kind, Verdict::Kind::kWait);
  node_.plugins.Let(kGpu);
  EXPECT_TRUE(node_.WaitUntil("q is admitted", [&] {
    return node_.manager().AdmitPod(*other)->kind == Verdict::Kind::kAdmit;
  }));
}

TEST_F(DeviceNodeTest, ManyPodsShareAndNoDeviceIsGivenTwice) {
  constexpr int kPods = 40;
  node_.Start();
  node_.plugins.Serve(kGpu, 8);
  std::map<std::string, std::string> left;
  for (int i = 0; i < kPods; ++i) {
    const std::string name = "p" + std::to_string(i);
    left[name] = DevicePod(name, {{kGpu, 1 + i % 3}});
  }
  // Whoever has his devices ends, until all have had theirs.
  while (!left.empty()) {
    std::string all;
    for (const auto& [name, yaml] : left) all += yaml;
    node_.Publish(all);
    ASSERT_TRUE(node_.WaitForAny(PodState::kReady));
    for (const PodInfo& pod : node_.manager().View()->Pods()) {
      if (pod.state == PodState::kReady) left.erase(pod.name.name);
    }
  }
  node_.Publish("");
  for (int i = 0; i < kPods; ++i) {
    ASSERT_TRUE(node_.WaitUntilGone("p" + std::to_string(i)));
  }
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
}

TEST_F(DeviceNodeTest, ADeviceGoesToTheMostImportantPod) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  const std::string waiting = DevicePod("a", {{kGpu, 1}}) +
                              DevicePod("z", {{kGpu, 1}}, "  priority: 1000\n");
  node_.Publish(DevicePod("holder", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  node_.Publish(DevicePod("holder", {{kGpu, 1}}) + waiting);
  ASSERT_TRUE(node_.WaitForReason("a", "NotEnoughFreeDevices"));
  ASSERT_TRUE(node_.WaitForReason("z", "NotEnoughFreeDevices"));
  node_.Publish(waiting);
  ASSERT_TRUE(node_.WaitFor("z", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("a").state, PodState::kWaiting);
}

TEST_F(DeviceNodeTest, WhatThereIsCanBeSeen) {
  node_.Start();
  node_.plugins.Connect(kGpu);
  node_.plugins.Report(kGpu, {{"0", device::Health::kHealthy, {0}},
                              {"1", device::Health::kUnhealthy, {}}});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.manager().View()->Resources(),
              ElementsAre(AllOf(
                  Field(&ResourceInfo::name, kGpu),
                  Field(&ResourceInfo::owner, ResourceOwner::kDevicePlugin),
                  Field(&ResourceInfo::state, ResourceState::kLive),
                  Field(&ResourceInfo::capacity, 2),
                  Field(&ResourceInfo::allocatable, 1),
                  Field(&ResourceInfo::held, 1))));
  EXPECT_THAT(
      node_.manager().View()->Devices(),
      ElementsAre(AllOf(Field(&DeviceInfo::resource, kGpu),
                        Field(&DeviceInfo::device, "0"),
                        Field(&DeviceInfo::health, DeviceHealth::kHealthy),
                        Field(&DeviceInfo::used_by, ElementsAre("default/p"))),
                  AllOf(Field(&DeviceInfo::device, "1"),
                        Field(&DeviceInfo::health, DeviceHealth::kUnhealthy),
                        Field(&DeviceInfo::used_by, IsEmpty()))));
  EXPECT_THAT(
      node_.manager().View()->Plugins(),
      ElementsAre(AllOf(Field(&PluginInfo::name, kGpu),
                        Field(&PluginInfo::kind, PluginKind::kDevicePlugin))));
  node_.plugins.Lose(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}) + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("q", "PluginNotReady"));
  EXPECT_EQ(node_.manager().View()->Devices().at(0).health,
            DeviceHealth::kUnknown);  // W-16
}

// What one admission had reserved is not taken for held by the next.
TEST_F(DeviceNodeTest, ACancelledAdmissionLeavesNothingToTheNext) {
  node_.Start(/*with_actuator=*/false);
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Hold(kGpu);
  const auto pod = PodOf(DevicePod("p", {{kGpu, 1}}));
  OperationId id = 0;
  auto first = AdmitIn(node_, *pod, &id);
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.manager().Cancel(id);
  EXPECT_THAT(first.get().status(), StatusIs(absl::StatusCode::kCancelled));
  auto second = AdmitIn(node_, *pod);
  node_.plugins.Let(kGpu);
  const auto verdict = second.get();
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kAdmit);
  const auto holds = node_.store.Load().FindPod(PodUid{"u-p"})->holds;
  ASSERT_THAT(holds, SizeIs(1));
  EXPECT_EQ(holds[0].phase, device::ReservationPhase::kCommitted);
}

// A pod whose call failed hears of its plugin, and need not wait for the time.
TEST_F(DeviceNodeTest, AFailedCallNamesWhatItWaitsFor) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Answer(kGpu, [](const auto&) {
    return absl::StatusOr<device::ContainerEdits>(InternalError("no power"));
  });
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "FailedAllocateDevices"));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
}

// Otherwise each device that comes free costs a look at each pod that waits.
TEST_F(DeviceNodeTest, OnlyThePodThatCanHaveAFreedDeviceIsJudgedAgain) {
  std::vector<PodUid> judged;  // On the manager's thread.
  node_.on_judge_again = [&](const PodUid& pod) { judged.push_back(pod); };
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("holder", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  std::string waiting;
  for (int i = 0; i < 50; ++i) {
    waiting += DevicePod("p" + std::to_string(i), {{kGpu, 1}});
  }
  node_.Publish(DevicePod("holder", {{kGpu, 1}}) + waiting);
  ASSERT_TRUE(node_.WaitFor("p49", PodState::kWaiting));
  ASSERT_TRUE(node_.WaitFor("p0", PodState::kWaiting));
  node_.RunAndWait([&] { judged.clear(); });
  node_.Publish(waiting);
  ASSERT_TRUE(node_.WaitUntilGone("holder"));
  ASSERT_TRUE(node_.WaitForAny(PodState::kReady));
  node_.RunAndWait([&] { EXPECT_EQ(judged.size(), 1u); });
  node_.Stop();
}

}  // namespace
}  // namespace devmgr
