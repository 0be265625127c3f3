// SPDX-License-Identifier: Apache-2.0
//
// Devices that a container gets in place of those that do not work
// (healthPolicy replace), where it was aligned to NUMA nodes.
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/health_names.h"
#include "support/numa_folder.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Class `gpu`, and its devices `d0` and on, each on the node of its place.
std::string GpusOn(const std::vector<int>& nodes) {
  std::string devices;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    devices += fmt::format(
        "{{name: d{}, attributes: {{resource.kubernetes.io/numaNode: {{int: "
        "{}}}}}}}, ",
        i, nodes[i]);
  }
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: "
      "gpu}}\nspec: {{selectors: [{{cel: {{expression: 'device.driver == "
      "\"d.example.com\"'}}}}]}}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s}}\nspec: {{driver: d.example.com, nodeName: node-1, pool: {{name: "
      "node-1, generation: 1, resourceSliceCount: 1}}, devices: [{}]}}\n---\n",
      devices);
}

/// One container with a claim for a GPU, and a NIC.
constexpr char kGpuAndNicPod[] =
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: q, "
    "uid: c-q}\nspec: {devices: {requests: [{name: r, exactly: "
    "{deviceClassName: gpu}}]}}\n---\n"
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
    "  nodeName: node-1\n  resourceClaims: [{name: own, resourceClaimName: "
    "q}]\n"
    "  containers: [{name: c, resources: {claims: [{name: own}], limits: "
    "{example.com/nic: 1}}}]\n---\n";

class ReplaceAlignedTest : public DeviceNodeTest {
 protected:
  ReplaceAlignedTest() {
    node_.options.node_name = "node-1";
    node_.options.health.policies[kDriver] = HealthPolicy::kReplace;
    node_.options.health.policies[kNic] = HealthPolicy::kReplace;
    node_.options.health.policies[kGpu] = HealthPolicy::kReplace;
    node_.sysfs_dir = machine_.path();
    node_.drivers.Register(kDriver);
  }
  void Begin(TopologyPolicy policy) {
    node_.options.topology.policy = policy;
    node_.Start();
  }
  /// Devices `0` and on, each on the node of its place; `broken` ones do not
  /// work.
  void Report(const std::string& resource,
              const std::vector<std::int64_t>& nodes,
              const std::set<std::size_t>& broken = {}) {
    std::vector<device::Device> devices;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      devices.push_back({std::to_string(i),
                         broken.contains(i) ? device::Health::kUnhealthy
                                            : device::Health::kHealthy,
                         {nodes[i]}});
    }
    node_.plugins.Report(resource, devices);
    node_.Sync();
  }
  void Break(const std::string& device, device::Health health = kBad) {
    node_.drivers.ReportHealth(kDriver,
                               {{{"node-1", device}, health, "", 60'000}});
    node_.Sync();
  }
  /// What the driver answers for the claim.
  void Prepares(const std::string& device) {
    node_.drivers.Prepares(
        "q",
        {{{"r"}, "node-1", device, {"d.example.com/x=" + device}, "", {}}});
  }
  absl::Status BeforeStart() {
    return node_.manager().BeforeContainerStart(node_.UidOf("p"), "c");
  }
  /// Of the only claim of this node.
  std::vector<std::string> Allocated() {
    std::vector<std::string> devices;
    const state::State state = node_.store.Load();
    for (const auto& [uid, claim] : state.local_claims) {
      if (!claim->object->status.allocation.has_value()) continue;
      for (const auto& result : claim->object->status.allocation->results) {
        devices.push_back(result.device);
      }
    }
    return devices;
  }
  /// The pod is on node 1, where its NIC is, with device `d1` of these.
  void RunOnNode1(TopologyPolicy policy, const std::vector<int>& nodes) {
    Prepares("d1");
    Begin(policy);
    node_.plugins.Connect(kNic);
    Report(kNic, {1});
    node_.Publish(GpusOn(nodes) + kGpuAndNicPod);
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    ASSERT_THAT(BeforeStart(), IsOk());
    ASSERT_THAT(Allocated(), ElementsAre("d1"));
  }
  /// A pod with a GPU of this plugin and a NIC, which is on node 1.
  void RunWithPlugins(TopologyPolicy policy,
                      const std::vector<std::int64_t>& gpus) {
    Begin(policy);
    node_.plugins.Connect(kNic);
    Report(kNic, {1});
    node_.plugins.Connect(kGpu);
    Report(kGpu, gpus);
    node_.Publish(
        DevicePod("p", {{kGpu, 1}, {kNic, 1}}, "  nodeName: node-1\n"));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    ASSERT_THAT(BeforeStart(), IsOk());
    ASSERT_THAT(Held("p", kGpu), ElementsAre("1"));
  }

  NumaFolder machine_{2};
};

class ReplaceAlignedPolicyTest
    : public ReplaceAlignedTest,
      public ::testing::WithParamInterface<TopologyPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, ReplaceAlignedPolicyTest,
                         ::testing::Values(TopologyPolicy::kBestEffort,
                                           TopologyPolicy::kRestricted,
                                           TopologyPolicy::kSingleNumaNode));

// The first free device is on the other node.
TEST_P(ReplaceAlignedPolicyTest, AClaimGetsADeviceOfItsNode) {
  RunOnNode1(GetParam(), {0, 1, 0, 1});
  Break("d1");
  Prepares("d3");
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("gets other devices")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated(), ElementsAre("d3"));
  EXPECT_THAT(BeforeStart(), IsOk());
}

TEST_P(ReplaceAlignedPolicyTest, ADeviceOfAPluginIsOfItsNode) {
  RunWithPlugins(GetParam(), {0, 1, 0, 1});
  Report(kGpu, {0, 1, 0, 1}, /*broken=*/{1});
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_THAT(Held("p", kGpu), ElementsAre("3"));
  EXPECT_THAT(Held("p", kNic), ElementsAre("0"));
}

class ReplaceStrictTest : public ReplaceAlignedTest,
                          public ::testing::WithParamInterface<TopologyPolicy> {
};
INSTANTIATE_TEST_SUITE_P(Policies, ReplaceStrictTest,
                         ::testing::Values(TopologyPolicy::kRestricted,
                                           TopologyPolicy::kSingleNumaNode));

TEST_P(ReplaceStrictTest, AClaimGetsNoneOfAnotherNode) {
  RunOnNode1(GetParam(), {0, 1});
  Break("d1");
  EXPECT_THAT(
      BeforeStart(),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("no others for it on NUMA node 1, to which "
                               "container 'c' is aligned"),
                     HasSubstr("1 numa"))));
  EXPECT_THAT(Allocated(), ElementsAre("d1"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  // One of the node that comes later will do.
  Prepares("d2");
  node_.Publish(GpusOn({0, 1, 1}) + kGpuAndNicPod);
  ASSERT_TRUE(node_.WaitUntil("there are three devices", [&] {
    const auto objects = node_.manager().Objects();
    const auto& slices = objects->resource_slices;
    return !slices.empty() && slices.begin()->second->devices.size() == 3;
  }));
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("gets other devices")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated(), ElementsAre("d2"));
}

// What counts is the policy that it was admitted under, over a restart.
TEST_P(ReplaceStrictTest, ThePolicyOfNowIsNoMatter) {
  RunOnNode1(GetParam(), {0, 1});
  node_.Stop();
  node_.options.topology.policy = TopologyPolicy::kNone;
  node_.Start();
  node_.Publish(GpusOn({0, 1}) + kGpuAndNicPod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  Break("d1");
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("on NUMA node 1")));
  EXPECT_THAT(Allocated(), ElementsAre("d1"));
}

TEST_P(ReplaceStrictTest, APluginsDeviceOfAnotherNodeIsNotTaken) {
  RunWithPlugins(GetParam(), {0, 1});
  Report(kGpu, {0, 1}, /*broken=*/{1});
  EXPECT_THAT(BeforeStart(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no other one for it now on NUMA node 1")));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  Report(kGpu, {0, 1, 1}, /*broken=*/{1});
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_THAT(Held("p", kGpu), ElementsAre("2"));
}

TEST_F(ReplaceAlignedTest, UnderBestEffortAnotherNodeWillDo) {
  RunOnNode1(TopologyPolicy::kBestEffort, {0, 1});
  Break("d1");
  Prepares("d0");
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("gets other devices")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated(), ElementsAre("d0"));
}

TEST_F(ReplaceAlignedTest, UnderBestEffortAPluginsDeviceMayBeElsewhere) {
  RunWithPlugins(TopologyPolicy::kBestEffort, {0, 1});
  Report(kGpu, {0, 1}, /*broken=*/{1});
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_THAT(Held("p", kGpu), ElementsAre("0"));
}

/// Init container `i` with a GPU and a NIC, which container `c` takes over.
std::string PodWithInit() {
  return DevicePod("p", {{kNic, 1}},
                   "  nodeName: node-1\n  initContainers:\n" +
                       ContainerYaml("i", {{kGpu, 1}, {kNic, 1}}));
}

// What it gave back was of node 1, and another pod has it by now.
TEST_P(ReplaceStrictTest, AnInitContainerThatRunsAgainIsOnItsNode) {
  Begin(GetParam());
  node_.plugins.Connect(kNic);
  Report(kNic, {1, 1});
  node_.plugins.Connect(kGpu);
  Report(kGpu, {0, 1});
  node_.Publish(PodWithInit());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_THAT(node_.manager().ReleaseInitContainers(node_.UidOf("p")), IsOk());
  const std::string other =
      DevicePod("q", {{kGpu, 1}, {kNic, 1}}, "  nodeName: node-1\n");
  node_.Publish(PodWithInit() + other);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  ASSERT_THAT(Held("q", kGpu), ElementsAre("1"));
  // The other GPU is free, and of node 0.
  const auto start = [&] {
    return node_.manager().BeforeContainerStart(node_.UidOf("p"), "i");
  };
  EXPECT_THAT(start(), StatusIs(absl::StatusCode::kUnavailable,
                                AllOf(HasSubstr("NUMA node 1"),
                                      HasSubstr("'default/q'"))));
  node_.Publish(PodWithInit());
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_THAT(start(), IsOk());
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
}

// The same after a reboot, when the pod gets its devices anew.
TEST_P(ReplaceStrictTest, AfterARebootItWaitsForItsNode) {
  Begin(GetParam());
  node_.plugins.Connect(kNic);
  Report(kNic, {1});
  node_.plugins.Connect(kGpu);
  Report(kGpu, {0, 1});
  node_.Publish(PodWithInit());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_THAT(node_.manager().ReleaseInitContainers(node_.UidOf("p")), IsOk());
  node_.Reboot();
  node_.plugins.Connect(kNic);
  Report(kNic, {1});
  node_.plugins.Connect(kGpu);
  Report(kGpu, {0});
  ASSERT_TRUE(node_.WaitForReason("p", "DevicesNotAligned"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("NUMA node 1"));
  Report(kGpu, {0, 1});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
}

}  // namespace
}  // namespace devmgr
