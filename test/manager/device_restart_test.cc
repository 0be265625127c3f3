// SPDX-License-Identifier: Apache-2.0
//
// Plugins that come back, managers that start again, nodes that boot: what pods
// hold stays theirs, and nobody else gets it.
#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

device::Device Broken(const std::string& id) {
  return {id, device::Health::kUnhealthy, {}};
}

class DeviceRestartTest : public DeviceNodeTest {
 protected:
  /// `name` has device 0 of the GPUs that there are.
  void StartWith(const std::string& name, int gpus) {
    node_.Start();
    node_.plugins.Serve(kGpu, gpus);
    node_.Publish(DevicePod(name, {{kGpu, 1}}));
    ASSERT_TRUE(node_.WaitFor(name, PodState::kReady));
    ASSERT_THAT(Held(name, kGpu), ElementsAre("0"));
  }

  /// What was told before this has been heard when it returns.
  void Settle() { node_.Sync(); }

  /// Capacity and allocatable of the GPUs.
  std::pair<std::int64_t, std::int64_t> Figures() {
    Settle();
    for (const ResourceInfo& resource : node_.manager().View()->Resources()) {
      if (resource.name == kGpu) {
        return {resource.capacity, resource.allocatable};
      }
    }
    return {-1, -1};
  }
};

using Numbers = std::pair<std::int64_t, std::int64_t>;

// DP-122, DP-129: the plugin restarts with the same list.
TEST_F(DeviceRestartTest, APluginThatComesBackFindsItsDevicesHeld) {
  StartWith("p", 2);
  const auto before = node_.manager().View()->Devices();
  node_.plugins.Lose(kGpu);
  EXPECT_EQ(Figures(), Numbers(2, 0));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  node_.plugins.Serve(kGpu, 2);
  EXPECT_EQ(Figures(), Numbers(2, 2));
  const auto after = node_.manager().View()->Devices();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].device, before[i].device);
    EXPECT_EQ(after[i].used_by, before[i].used_by);
  }
  node_.Publish(DevicePod("p", {{kGpu, 1}}) + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(Held("q", kGpu), ElementsAre("1"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(node_.plugins.calls(), SizeIs(2));
}

// DP-011: instances come one after another, whatever they offer.
TEST_F(DeviceRestartTest, OptionsDoNotChangeFigures) {
  node_.Start();
  for (const bool pre_start : {false, true}) {
    for (const bool preferred : {false, true}) {
      const plugin::PluginOptions options{pre_start, preferred};
      node_.plugins.Serve(kGpu, 2, options);
      EXPECT_EQ(Figures(), Numbers(2, 2));
      node_.plugins.Serve(kGpu, 2, options);
      EXPECT_EQ(Figures(), Numbers(2, 2));
      node_.plugins.Connect(kGpu, options);
      node_.plugins.Report(kGpu, HealthyDevices(1));
      EXPECT_EQ(Figures(), Numbers(1, 1));
    }
  }
}

// DP-123: on no NUMA node, and the listing says so.
TEST_F(DeviceRestartTest, ADeviceOnNoNodeIsListedWithoutTopology) {
  StartWith("p", 1);
  const auto devices = node_.manager().View()->Devices();
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].device, "0");
  EXPECT_THAT(devices[0].used_by, ElementsAre("default/p"));
  EXPECT_THAT(devices[0].numa_nodes, IsEmpty());
  const auto answer = node_.manager().ContainerDevicesOf(node_.UidOf("p"), "c");
  ASSERT_THAT(answer.status(), IsOk());
  EXPECT_THAT((*answer)->resources, ElementsAre(HeldResource{kGpu, {"0"}}));
}

// DP-124, DP-125: the manager restarts while the plugin is down; it returns.
// DP-127: whatever its containers did meanwhile, in the same boot it runs.
TEST_F(DeviceRestartTest, APodIsLeftAloneUntilItsPluginReturns) {
  StartWith("p", 3);
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(Figures(), Numbers(0, 0));
  EXPECT_THAT(node_.manager().View()->Devices(),
              ElementsAre(Field(&DeviceInfo::device, "0")));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  node_.plugins.Serve(kGpu, 3);
  EXPECT_EQ(Figures(), Numbers(3, 3));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
}

// DP-126 as of a node below a scheduler: after a reboot the plugin is waited
// for, and then the pod is rejected as by the kubelet.
TEST_F(DeviceRestartTest, AfterARebootTheWaitForAPluginEnds) {
  StartWith("p", 1);
  node_.Stop();
  node_.boot_id = "boot-2";
  node_.options.policies.authority = Authority::kScheduler;
  node_.options.policies.admission_wait = milliseconds(50);
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "UnexpectedAdmissionError");
  EXPECT_THAT(Held("p", kGpu), IsEmpty());
}

// DP-065 under one UID: refused as by the kubelet, and what it holds stays its
// own, since its containers may run.
TEST_F(DeviceRestartTest, APodThatAsksForMoreThanItHoldsIsRefused) {
  static constexpr char kRefusal[] =
      "Allocate failed due to pod \"u-p\" container \"c\" changed request for "
      "resource \"example.com/gpu\" from 1 to 2, which is unexpected";
  StartWith("p", 3);
  node_.Stop();
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  node_.Start();
  node_.plugins.Serve(kGpu, 3);
  ASSERT_TRUE(node_.WaitForReason("p", "UnexpectedAdmissionError"));
  EXPECT_EQ(node_.PodNamed("p").message, kRefusal);
  const auto objects = node_.manager().Objects();
  const auto verdict =
      node_.manager().AdmitPod(*objects->pods.at({"default", "p"}));
  ASSERT_THAT(verdict, IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kReject);
  EXPECT_EQ(verdict->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(verdict->message, kRefusal);
  // Told once, and the ledger has nothing of it.
  EXPECT_THAT(MessagesOf("UnexpectedAdmissionError"), ElementsAre(kRefusal));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
  // As it was, it is welcome.
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  EXPECT_TRUE(node_.WaitUntil("it is not refused any more", [&] {
    return node_.PodNamed("p").reason.empty();
  }));
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// Its file is broken in its place: that says nothing about its containers.
TEST_F(DeviceRestartTest, AReadyPodWhoseManifestBreaksKeepsItsDevices) {
  StartWith("p", 1);
  node_.Publish(
      DevicePod("p", {{kGpu, 1}}, "  resourceClaims: [{name: Not_A_Label}]\n") +
      DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("q", "NotEnoughFreeDevices"));
  EXPECT_THAT(node_.manager().Objects()->malformed_pods, SizeIs(1));
  Settle();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
}

// In one process too, also for a resource or a container that it had not.
TEST_F(DeviceRestartTest, AReadyPodGetsNoFurtherResources) {
  StartWith("p", 2);
  node_.plugins.Serve(kNic, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "UnexpectedAdmissionError"));
  EXPECT_THAT(node_.PodNamed("p").message,
              ::testing::HasSubstr("\"example.com/nic\" from 0 to 1"));
  EXPECT_THAT(Held("p", kNic), IsEmpty());
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
}

// Its containers are gone, and they would start with less all the same.
TEST_F(DeviceRestartTest, AfterARebootAChangedRequestIsRefusedToo) {
  StartWith("p", 2);
  node_.Stop();
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  node_.boot_id = "boot-2";
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  ASSERT_TRUE(node_.WaitForReason("p", "UnexpectedAdmissionError"));
  EXPECT_NE(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
}

// DP-128, DP-105 improved: the frozen answer is what each start gets, whatever
// became of the device.
TEST_F(DeviceRestartTest, AContainerThatRestartsGetsTheSame) {
  StartWith("p", 2);
  const PodUid pod = node_.UidOf("p");
  const auto before = node_.manager().ContainerDevicesOf(pod, "c");
  ASSERT_THAT(before.status(), IsOk());
  EXPECT_THAT(node_.manager().BeforeContainerStart(pod, "c"), IsOk());
  node_.plugins.Report(kGpu, {Broken("0"), Broken("1")});
  EXPECT_EQ(Figures(), Numbers(2, 0));
  EXPECT_THAT(node_.manager().BeforeContainerStart(pod, "c"), IsOk());
  const auto after = node_.manager().ContainerDevicesOf(pod, "c");
  ASSERT_THAT(after.status(), IsOk());
  EXPECT_EQ(**after, **before);
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
}

// DP-048
TEST_F(DeviceRestartTest, APodOutlivesTheHealthOfItsDevice) {
  StartWith("p", 1);
  node_.plugins.Report(kGpu, {Broken("0")});
  EXPECT_EQ(Figures(), Numbers(1, 0));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_EQ(Figures(), Numbers(1, 0));
}

// DP-071, DP-079: who is gone holds nothing, and has no answer.
TEST_F(DeviceRestartTest, WhoWaitsGetsTheDeviceOfAPodThatIsGone) {
  StartWith("a", 1);
  const PodUid gone = node_.UidOf("a");
  node_.Publish(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("b", "NotEnoughFreeDevices"));
  node_.Publish(DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(Held("b", kGpu), ElementsAre("0"));
  ASSERT_TRUE(node_.WaitUntilGone("a"));
  EXPECT_THAT(node_.manager().ContainerDevicesOf(gone, "c").status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(node_.plugins.calls(), SizeIs(2));
}

// DP-072: until all sources have spoken nobody is gone.
TEST_F(DeviceRestartTest, NobodyIsGoneWhileTheSourcesAreNotComplete) {
  StartWith("a", 1);
  ObjectSnapshot partial = SnapshotOf(DevicePod("b", {{kGpu, 1}}));
  partial.complete = false;
  node_.source->Publish(partial);
  ASSERT_TRUE(node_.WaitForReason("b", "NotEnoughFreeDevices"));
  EXPECT_THAT(Held("a", kGpu), ElementsAre("0"));
}

// DP-073: the other holder of the resource goes while the plugin is asked.
TEST_F(DeviceRestartTest, AReleaseDuringTheQuestionHarmsNobody) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2, {.preferred_allocation = true});
  node_.Publish(DevicePod("a", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  const std::size_t before = node_.plugins.calls().size();
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(before + 1));
  node_.Publish(DevicePod("b", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitUntilGone("a"));
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(Held("b", kGpu), SizeIs(1));
}

// DP-057: what the kubelet asks its checkpoint, our ledger tells: resources it
// knows are not new after a restart.
TEST_F(DeviceRestartTest, AResourceIsKnownFromTheFirstTimeOn) {
  node_.Start();
  EXPECT_THAT(node_.manager().View()->Resources(), IsEmpty());
  node_.Stop();
  StartWith("p", 1);
  node_.Restart();
  EXPECT_THAT(node_.manager().View()->Resources(),
              ElementsAre(Field(&ResourceInfo::name, kGpu)));
}

// Invariant 8: whoever makes up ever new names does not fill the memory.
TEST_F(DeviceRestartTest, NamesWithoutPluginAreForgottenWhenThereAreMany) {
  constexpr int kNames = 1'100;
  node_.options.device_plugins.grace_period = std::chrono::milliseconds(1);
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  for (int i = 0; i < kNames; ++i) {
    const std::string name = "example.com/made-up-" + std::to_string(i);
    node_.plugins.Serve(name, 1);
    node_.plugins.Lose(name);
  }
  node_.plugins.Lose(kGpu);
  EXPECT_TRUE(node_.WaitUntil("there are not that many", [&] {
    return node_.store.Load().resources.size() <= 1'000 &&
           node_.manager().View()->Resources().size() <= 1'000;
  }));
  // What somebody holds is remembered.
  EXPECT_NE(node_.store.Load().FindResource(kGpu), nullptr);
}

// One that holds claims cannot be rejected any more: it waits on, and is woken.
TEST_F(DeviceNodeTest, APodWithClaimsOutlivesThePatienceOfAScheduler) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.options.policies.admission_wait = std::chrono::milliseconds(50);
  node_.drivers.Register("d.example.com");
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(ClaimYaml("claim", "u-claim", {"d.example.com"}, {"u-p"}) +
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
                "spec:\n  containers:\n  - name: c\n"
                "    resources: {claims: [{name: x}], limits: "
                "{example.com/gpu: 1}}\n"
                "  resourceClaims: [{name: x, resourceClaimName: claim}]\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Reboot();
  node_.plugins.Connect(kGpu);  // And tells nothing.
  ASSERT_TRUE(node_.WaitForReason("p", "UnexpectedAdmissionError"));
  EXPECT_NE(node_.PodNamed("p").state, PodState::kRejected);
  node_.plugins.Report(kGpu, HealthyDevices(1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

}  // namespace
}  // namespace devmgr
