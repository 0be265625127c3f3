// SPDX-License-Identifier: Apache-2.0
//
// Pods aligned to NUMA nodes: which devices they get, what they wait for, and
// why they are rejected.
#include <fmt/core.h>

#include <atomic>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/recorded_metrics.h"
#include "support/numa_folder.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kRefused[] =
    "Resources cannot be allocated with Topology locality";

/// Devices `0` and on, each on the node of its place.
std::vector<device::Device> On(const std::vector<std::int64_t>& nodes) {
  std::vector<device::Device> devices;
  for (const std::int64_t node : nodes) {
    devices.push_back(
        {std::to_string(devices.size()), device::Health::kHealthy, {node}});
  }
  return devices;
}

class TopologyNodeTest : public DeviceNodeTest {
 protected:
  void Begin(TopologyPolicy policy,
             TopologyScope scope = TopologyScope::kContainer) {
    node_.sysfs_dir = machine_.path();
    node_.options.topology.policy = policy;
    node_.options.topology.scope = scope;
    node_.Start();
  }
  void Serve(const std::string& resource,
             const std::vector<std::int64_t>& nodes,
             plugin::PluginOptions options = {}) {
    node_.plugins.Connect(resource, options);
    node_.plugins.Report(resource, On(nodes));
  }
  PodAlignmentInfo AlignmentOf(const std::string& pod) {
    const auto info = node_.manager().View()->AlignmentOf(PodUid{"u-" + pod});
    EXPECT_THAT(info.status(), IsOk());
    return info.ok() ? *info : PodAlignmentInfo();
  }
  /// Pods `a` on node 0 and `b` on node 1 have one GPU and the NIC of their
  /// node; one GPU of each node is left.
  std::string HalfTaken() {
    Serve(kGpu, {0, 0, 1, 1, 2});
    Serve(kNic, {0, 1, 2});
    std::string all;
    for (const char* pod : {"a", "b", "e"}) {
      all += DevicePod(pod, {{kGpu, 1}, {kNic, 1}});
      node_.Publish(all);
      EXPECT_TRUE(node_.WaitFor(pod, PodState::kReady));
    }
    EXPECT_THAT(Held("a", kGpu), ElementsAre("0"));
    EXPECT_THAT(Held("b", kGpu), ElementsAre("2"));
    EXPECT_THAT(Held("e", kGpu), ElementsAre("4"));
    return all;
  }
  static std::string PodOf(const std::string& name) {
    return DevicePod(name, {{kGpu, 1}, {kNic, 1}});
  }

  NumaFolder machine_{3};
};

TEST_F(TopologyNodeTest, UnderNoneDevicesAreTakenInTheirOrder) {
  Begin(TopologyPolicy::kNone);
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  EXPECT_THAT(node_.manager().View()->AlignmentOf(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("u-p")));
}

class AlignedTest : public TopologyNodeTest,
                    public ::testing::WithParamInterface<TopologyPolicy> {};

INSTANTIATE_TEST_SUITE_P(Policies, AlignedTest,
                         ::testing::Values(TopologyPolicy::kBestEffort,
                                           TopologyPolicy::kRestricted,
                                           TopologyPolicy::kSingleNumaNode));

TEST_P(AlignedTest, DevicesOfAContainerAreOnOneNode) {
  Begin(GetParam());
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  EXPECT_THAT(Held("p", kNic), ElementsAre("0"));

  const PodAlignmentInfo info = AlignmentOf("p");
  EXPECT_TRUE(info.admitted);
  ASSERT_THAT(info.containers, SizeIs(1));
  const ContainerAlignmentInfo& container = info.containers[0];
  EXPECT_EQ(container.merged,
            (TopologyHint{NumaMask::OfNode(1), /*preferred=*/true}));
  ASSERT_THAT(container.resources, SizeIs(2));
  EXPECT_EQ(container.resources[0].resource, kGpu);
  EXPECT_EQ(container.resources[0].provider, "device");
  EXPECT_THAT(
      *container.resources[0].hints,
      ElementsAre(
          TopologyHint{NumaMask::OfNode(0), true},
          TopologyHint{NumaMask::OfNode(1), true},
          TopologyHint{NumaMask::OfNode(0) | NumaMask::OfNode(1), false}));
  // BO-152: it is kept by pod and container, so that a container that is made
  // anew has it, whatever becomes of the one before; it goes with the pod.
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(node_.manager().BeforeContainerStart(PodUid{"u-p"}, "c"),
                IsOk());
  }
  EXPECT_EQ(AlignmentOf("p").containers[0].merged, container.merged);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.manager().View()->AlignmentOf(PodUid{"u-p"}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("u-p")));
}

// DP-094: what does not fit on the preferred node is taken from others, and
// never more than is asked for.
TEST_F(TopologyNodeTest, BestEffortTakesTheRestFromOtherNodes) {
  Begin(TopologyPolicy::kBestEffort);
  Serve(kGpu, {0, 0, 0, 1, 1, 1});
  Serve(kNic, {0});
  node_.Publish(DevicePod("p", {{kGpu, 4}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0", "1", "2", "3"));
}

// BO-148
TEST_F(TopologyNodeTest, BelowASchedulerWhatIsNotAlignedIsRejected) {
  node_.options.policies.authority = Authority::kScheduler;
  Begin(TopologyPolicy::kRestricted);
  Serve(kGpu, {0});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "TopologyAffinityError");
  EXPECT_EQ(node_.PodNamed("p").message, kRefused);
  EXPECT_THAT(AlignmentOf("p").message, HasSubstr("'example.com/gpu'"));
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
}

// The same where the pod could be aligned if another one ended: below a
// scheduler another node is better.
TEST_F(TopologyNodeTest, BelowASchedulerNoHolderIsWaitedFor) {
  node_.options.policies.authority = Authority::kScheduler;
  Begin(TopologyPolicy::kSingleNumaNode);
  const std::string holders = HalfTaken();
  node_.Publish(holders + DevicePod("c", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("c", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("c").reason, "TopologyAffinityError");
  EXPECT_EQ(node_.PodNamed("c").message, kRefused);
}

TEST_F(TopologyNodeTest, WhatCanNeverBeAlignedIsRejectedByANodeToo) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "TopologyAffinityError");
  EXPECT_EQ(node_.PodNamed("p").message, kRefused);
}

// BO-149: nothing of the first container is held.
TEST_F(TopologyNodeTest, ARefusedSecondContainerLeavesNothingOfTheFirst) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1});
  Serve(kNic, {0});
  node_.Publish(DevicePod("p", {{kGpu, 1}}) +
                "");  // Alone it would be admitted.
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  const std::size_t calls = node_.plugins.calls().size();
  // The first container takes the GPU of node 0, where the NIC is.
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: q, uid: u-q}\nspec:\n"
      "  containers:\n" +
      ContainerYaml("first", {{kGpu, 1}}) +
      ContainerYaml("second", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("q").reason, "TopologyAffinityError");
  EXPECT_THAT(node_.store.Load().device_holders, IsEmpty());
  EXPECT_THAT(node_.plugins.calls(), SizeIs(calls));
  const PodAlignmentInfo info = AlignmentOf("q");
  ASSERT_THAT(info.containers, SizeIs(2));
  EXPECT_TRUE(info.containers[0].admitted);
  EXPECT_FALSE(info.containers[1].admitted);
}

// BO-150
class ScopeTest : public TopologyNodeTest,
                  public ::testing::WithParamInterface<TopologyScope> {};
INSTANTIATE_TEST_SUITE_P(Scopes, ScopeTest,
                         ::testing::Values(TopologyScope::kContainer,
                                           TopologyScope::kPod));

TEST_P(ScopeTest, OneGpuPerNodeIsEnoughByContainerAndNotByPod) {
  Begin(TopologyPolicy::kSingleNumaNode, GetParam());
  Serve(kGpu, {0, 1});
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers:\n" +
      ContainerYaml("first", {{kGpu, 1}}) +
      ContainerYaml("second", {{kGpu, 1}}));
  if (GetParam() == TopologyScope::kContainer) {
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    EXPECT_THAT(Held("p", kGpu), ElementsAre("0", "1"));
  } else {
    ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
    EXPECT_EQ(node_.PodNamed("p").reason, "TopologyAffinityError");
  }
}

// Init containers hand on, and what they have counts as free for those after
// them: W-28.
TEST_F(TopologyNodeTest, WhatAnInitContainerHandsOnIsAligned) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  initContainers:\n" +
      ContainerYaml("warm", {{kGpu, 1}, {kNic, 1}}) + "  containers:\n" +
      ContainerYaml("c", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1", "1"));
}

TEST_F(TopologyNodeTest, APodWaitsForWhoIsInTheWayOfItsAlignment) {
  Begin(TopologyPolicy::kSingleNumaNode);
  const std::string holders = HalfTaken();
  node_.Publish(holders + DevicePod("c", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitForReason("c", "DevicesNotAligned"));
  const PodInfo waiting = node_.PodNamed("c");
  EXPECT_EQ(waiting.state, PodState::kWaiting);
  EXPECT_THAT(waiting.message,
              AllOf(HasSubstr("container 'c'"), HasSubstr("NUMA node 0"),
                    HasSubstr("1 of 2 free there"), HasSubstr("'default/a'"),
                    Not(HasSubstr("'default/b'"))));
  EXPECT_THAT(waiting.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  const auto judged = node_.Judgements();

  // That one more GPU is free elsewhere changes nothing for it: three are, and
  // no two on one node.
  node_.Publish(PodOf("a") + PodOf("b") + DevicePod("c", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitUntilGone("e"));
  node_.Sync();
  EXPECT_EQ(node_.PodNamed("c").state, PodState::kWaiting);
  int before = 0;
  int after = 0;
  for (const auto& [key, count] : judged) {
    if (key.ends_with("/wait")) before += count;
  }
  for (const auto& [key, count] : node_.Judgements()) {
    if (key.ends_with("/wait")) after += count;
  }
  EXPECT_EQ(before, after);

  node_.Publish(PodOf("b") + DevicePod("c", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("c", PodState::kReady));
  EXPECT_THAT(Held("c", kGpu), ElementsAre("0", "1"));
}

TEST_F(TopologyNodeTest, ASimulationAlignsToo) {
  Begin(TopologyPolicy::kSingleNumaNode);
  HalfTaken();
  SimulationRequest request;
  request.pods = {
      *SnapshotOf(DevicePod("c", {{kGpu, 2}})).pods.begin()->second,
      *SnapshotOf(DevicePod("d", {{kGpu, 1}})).pods.begin()->second};
  request.independent = true;
  const auto simulated = node_.manager().Simulate(request);
  ASSERT_THAT(simulated.status(), IsOk());
  ASSERT_THAT(simulated->pods, SizeIs(2));
  EXPECT_EQ(simulated->pods[0].verdict.reason, "DevicesNotAligned");
  ASSERT_THAT(simulated->pods[0].refusals, SizeIs(1));
  EXPECT_THAT(simulated->pods[0].refusals[0].counts,
              Contains(std::pair<std::string, std::size_t>("numa", 2)));
  EXPECT_EQ(simulated->pods[1].verdict.kind, Verdict::Kind::kAdmit);
}

TEST_F(TopologyNodeTest, ItWaitsForTheNodeThatLacksLeast) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 0, 0, 1, 1, 1});
  Serve(kNic, {0, 1});
  const std::string a = DevicePod("a", {{kGpu, 2}, {kNic, 1}});
  const std::string b = DevicePod("b", {{kGpu, 1}, {kNic, 1}});
  node_.Publish(a);
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  node_.Publish(a + b);
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  node_.Publish(a + b + DevicePod("c", {{kGpu, 3}}));
  ASSERT_TRUE(node_.WaitForReason("c", "DevicesNotAligned"));
  EXPECT_THAT(node_.PodNamed("c").message,
              AllOf(HasSubstr("NUMA node 1"), HasSubstr("'default/b'"),
                    Not(HasSubstr("'default/a'"))));
}

// A device that does not work may recover.
TEST_F(TopologyNodeTest, ABrokenDeviceInTheWayIsWaitedFor) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kNic, {0});
  node_.plugins.Connect(kGpu);
  auto gpus = On({0, 1});
  gpus[0].health = device::Health::kUnhealthy;
  node_.plugins.Report(kGpu, gpus);
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "DevicesNotAligned"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("not healthy: '0'"));
  node_.plugins.Report(kGpu, On({0, 1}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
}

// The starvation limit holds for a pod that waits for aligned devices: what is
// free, though it is enough for others, is kept for it.
TEST_F(TopologyNodeTest, ALaterPodDoesNotPassOneThatHasWaitedForLong) {
  node_.options.policies.starvation_limit = std::chrono::milliseconds(1);
  Begin(TopologyPolicy::kSingleNumaNode);
  const std::string holders = HalfTaken();
  const std::string c = DevicePod("c", {{kGpu, 2}});
  node_.Publish(holders + c);
  ASSERT_TRUE(node_.WaitForReason("c", "DevicesNotAligned"));
  std::atomic<bool> over{false};
  node_.RunAfter(std::chrono::milliseconds(10), [&] { over = true; });
  while (!over) node_.Sync();
  node_.Publish(holders + c + DevicePod("late", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("late", "BehindInLine"));
  EXPECT_THAT(node_.PodNamed("late").message, HasSubstr("'default/c'"));
  node_.Publish(PodOf("b") + PodOf("e") + c + DevicePod("late", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("c", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("late", PodState::kReady));
  EXPECT_THAT(Held("c", kGpu), ElementsAre("0", "1"));
}

// DP-083 with a hint: the plugin is asked among the aligned devices.
TEST_F(TopologyNodeTest, APluginPrefersAmongAlignedDevices) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1, 1, 1}, {.preferred_allocation = true});
  Serve(kNic, {1});
  node_.plugins.AnswerPreferred(kGpu,
                                [](const plugin::PreferredRequest& request)
                                    -> absl::StatusOr<std::vector<DeviceId>> {
                                  EXPECT_THAT(request.available,
                                              ElementsAre("1", "2", "3"));
                                  return std::vector<DeviceId>{"0", "3"};
                                });
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("3"));
}

// Pods of a ledger are not aligned anew, whatever the policy says now.
TEST_F(TopologyNodeTest, WhatAPodHoldsStaysItsOwnUnderAnotherPolicy) {
  Begin(TopologyPolicy::kNone);
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.options.topology.policy = TopologyPolicy::kSingleNumaNode;
  node_.Reboot();
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
}

/// An embedder's CPUs.
class Cpus : public TopologyHintProvider {
 public:
  std::string_view name() const override { return "cpu"; }
  absl::StatusOr<std::map<std::string, TopologyHintList>> HintsOf(
      const TopologyRequest& request) const override {
    using Hints = std::map<std::string, TopologyHintList>;
    if (request.pod.metadata.name != "p") return Hints();
    if (fails) return absl::UnavailableError("no CPUs are known yet");
    std::vector<TopologyHint> hints;
    if (node >= 0) hints = {{NumaMask::OfNode(node), /*preferred=*/true}};
    return Hints{{"cpu", hints}};
  }

  std::atomic<int> node{1};  ///< Less than 0: none has enough.
  std::atomic<bool> fails{false};
};

TEST_F(TopologyNodeTest, AnEmbeddersHintsCount) {
  Cpus cpus;
  node_.topology_providers = {&cpus};
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  const PodAlignmentInfo info = AlignmentOf("p");
  ASSERT_THAT(info.containers, SizeIs(1));
  ASSERT_THAT(info.containers[0].resources, SizeIs(2));
  EXPECT_EQ(info.containers[0].resources[1].provider, "cpu");
  node_.Stop();
}

// Nobody says when an embedder has other hints: the pod is tried again.
TEST_F(TopologyNodeTest, WhatAnEmbedderRefusesIsTriedAgain) {
  Cpus cpus;
  cpus.node = -1;
  node_.topology_providers = {&cpus};
  Begin(TopologyPolicy::kRestricted);
  Serve(kGpu, {0, 1});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "FailedAllocateDevices"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("'cpu'"));
  cpus.node = 0;
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
  node_.Stop();
}

TEST_F(TopologyNodeTest, AnEmbedderThatFailsIsNamedAndAskedAgain) {
  Cpus cpus;
  cpus.fails = true;
  node_.topology_providers = {&cpus};
  Begin(TopologyPolicy::kBestEffort);
  Serve(kGpu, {0, 1});
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "FailedAllocateDevices"));
  EXPECT_THAT(node_.PodNamed("p").message,
              AllOf(HasSubstr("topology hint provider 'cpu'"),
                    HasSubstr("no CPUs are known yet")));
  cpus.fails = false;
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
}

// A pod without devices is judged by what the embedder has.
TEST_F(TopologyNodeTest, APodOfCpusOnlyIsJudgedByThem) {
  Cpus cpus;
  cpus.node = -1;
  node_.topology_providers = {&cpus};
  node_.options.policies.authority = Authority::kScheduler;
  Begin(TopologyPolicy::kRestricted);
  node_.Publish(DevicePod("p", {}) + DevicePod("q", {}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "TopologyAffinityError");
  EXPECT_EQ(node_.PodNamed("p").message, kRefused);
  node_.Stop();
}

class CountedAlignment : public RecordedMetrics {
 public:
  void OnTopologyAdmission(std::chrono::nanoseconds took,
                           bool refused) override {
    Add(fmt::format("judged {}", refused ? "refused" : "admitted"), took);
  }
  void OnAlignedContainers(bool pod_scope, bool aligned,
                           std::size_t containers) override {
    Add(fmt::format("{} {} {}", pod_scope ? "pod" : "container",
                    aligned ? "aligned" : "not aligned", containers));
  }
};

TEST_F(TopologyNodeTest, AlignmentIsCounted) {
  CountedAlignment metrics;
  node_.metrics = &metrics;
  node_.options.policies.authority = Authority::kScheduler;
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1});
  Serve(kNic, {1});
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(metrics.calls(),
              ElementsAre("judged admitted", "container aligned 1"));
  node_.Publish(DevicePod("p", {{kGpu, 1}, {kNic, 1}}) +
                DevicePod("q", {{kGpu, 1}, {kNic, 0}}) +
                DevicePod("r", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("r", PodState::kRejected));
  node_.Stop();
}

// The nodes of the machine, their distances, CPUs and devices.
TEST_F(TopologyNodeTest, TheMachineIsShown) {
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kGpu, {0, 1, 1});
  node_.plugins.Serve(kNic, 1);
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const NumaInfo info = node_.manager().View()->Numa();
  EXPECT_EQ(info.options.policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_FALSE(info.synthetic);
  EXPECT_THAT(info.problems, IsEmpty());
  ASSERT_THAT(info.nodes, SizeIs(3));
  EXPECT_EQ(info.nodes[1].id, 1);
  EXPECT_THAT(info.nodes[1].cpus, ElementsAre(2, 3));
  EXPECT_EQ(info.nodes[1].memory_bytes, 2048U * 1024U);
  EXPECT_THAT(info.nodes[1].distances, ElementsAre(21, 10, 21));
  EXPECT_THAT(info.nodes[1].devices,
              ElementsAre(NumaDevicesInfo{kGpu, false, 2, 2, 2}));
  EXPECT_THAT(info.nodes[0].devices,
              ElementsAre(NumaDevicesInfo{kGpu, false, 1, 0, 1}));
  EXPECT_THAT(info.nodes[2].devices, IsEmpty());
  EXPECT_THAT(info.nowhere, ElementsAre(NumaDevicesInfo{kNic, false, 1, 0, 1}));
}

// BO-157, BO-158: what is odd about the machine prevents no start, and is an
// event.
TEST_F(TopologyNodeTest, AnOddMachineIsReported) {
  machine_.Write(NumaFolder::Node(2) + "/cpulist", "\n");
  machine_.Write(NumaFolder::Node(1) + "/distance", "21 10 x\n");
  Begin(TopologyPolicy::kBestEffort);
  EXPECT_THAT(MessagesOf("NumaProblem"),
              AllOf(Contains(HasSubstr("NUMA node 2 has no CPUs")),
                    Contains(HasSubstr("node1/distance"))));
}

// The devices of a plugin follow those that this node allocated for a claim of
// the container.
TEST_F(TopologyNodeTest, DevicesFollowTheClaimOfTheirContainer) {
  node_.options.node_name = "node-1";
  node_.drivers.Register(kDriver);
  Begin(TopologyPolicy::kSingleNumaNode);
  Serve(kNic, {0, 1});
  node_.Publish(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
      "accel}\nspec: {selectors: [{cel: {expression: 'device.driver == "
      "\"d.example.com\"'}}]}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "s}\nspec:\n  driver: d.example.com\n  nodeName: node-1\n  pool: {name: "
      "node-1, generation: 1, resourceSliceCount: 1}\n  devices: [{name: a, "
      "attributes: {resource.kubernetes.io/numaNode: {int: 1}}}]\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "own, uid: u-own}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: accel}}]}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{name: own, resourceClaimName: "
      "own}]\n  containers: [{name: c, resources: {claims: [{name: own}], "
      "limits: {example.com/nic: \"1\"}}}]\n---\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kNic), ElementsAre("1"));
  const PodAlignmentInfo info = AlignmentOf("p");
  ASSERT_THAT(info.containers, SizeIs(1));
  ASSERT_THAT(info.containers[0].resources, SizeIs(2));
  EXPECT_EQ(info.containers[0].resources[1].provider, "claim");
  EXPECT_EQ(info.containers[0].resources[1].resource, "own");
  EXPECT_FALSE(info.containers[0].resources[1].informative);
  const NumaInfo machine = node_.manager().View()->Numa();
  EXPECT_THAT(machine.nodes[1].devices,
              Contains(NumaDevicesInfo{kDriver, true, 1, 1, 1}));
}

}  // namespace
}  // namespace devmgr
