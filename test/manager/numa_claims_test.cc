// SPDX-License-Identifier: Apache-2.0
//
// Claims that this node allocates along NUMA nodes: with the devices of plugins
// of the same container, and with each other; and what of it is kept.
#include <fmt/core.h>

#include <algorithm>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "support/numa_folder.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPort[] = "port.example.com";  ///< The other driver.

/// Class `NAME` of all devices of the driver.
std::string ClassOf(const std::string& name, const std::string& driver) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: "
      "{}}}\nspec: {{selectors: [{{cel: {{expression: 'device.driver == "
      "\"{}\"'}}}}]}}\n---\n",
      name, driver);
}

/// Devices `d0` and on, each on the node of its place; none for -1.
std::string SliceOf(const std::string& driver, const std::vector<int>& nodes) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s-{0}}}\nspec:\n  driver: {0}\n  nodeName: node-1\n  pool: {{name: "
      "node-1, generation: 1, resourceSliceCount: 1}}\n  devices: [",
      driver);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format("{{name: d{}", i);
    if (nodes[i] >= 0) {
      text += fmt::format(
          ", attributes: {{resource.kubernetes.io/numaNode: {{int: {}}}}}",
          nodes[i]);
    }
    text += "}, ";
  }
  return text + "]\n---\n";
}

std::string ClaimOf(const std::string& name, const std::string& of_class,
                    int count = 1) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: {1}, count: {2}}}}}]}}}}\n---\n",
      name, of_class, count);
}

/// One container with these claims and so many NICs.
std::string PodWith(const std::string& name,
                    const std::vector<std::string>& claims, int nics) {
  std::string entries;
  std::string used;
  for (const std::string& claim : claims) {
    entries += fmt::format("{{name: {0}, resourceClaimName: {0}}}, ", claim);
    used += fmt::format("{{name: {}}}, ", claim);
  }
  const std::string limits =
      nics > 0 ? fmt::format("{}: {}", kNic, nics) : std::string();
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{1}]\n  containers: [{{name: c, "
      "resources: {{claims: [{2}], limits: {{{3}}}}}}}]\n---\n",
      name, entries, used, limits);
}

class NumaClaimsTest : public DeviceNodeTest {
 protected:
  NumaClaimsTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
    node_.drivers.Register(kPort);
  }
  void Begin(TopologyPolicy policy) {
    node_.sysfs_dir = machine_.path();
    node_.options.topology.policy = policy;
    node_.Start();
  }
  /// NICs, each on the node of its place.
  void ServeNics(const std::vector<std::int64_t>& nodes) {
    std::vector<device::Device> devices;
    for (const std::int64_t node : nodes) {
      devices.push_back(
          {std::to_string(devices.size()), device::Health::kHealthy, {node}});
    }
    node_.plugins.Connect(kNic);
    node_.plugins.Report(kNic, devices);
  }
  std::vector<std::string> DevicesOf(const std::string& claim) {
    std::vector<std::string> devices;
    for (const auto& [uid, record] : node_.store.Load().local_claims) {
      const ResourceClaim& object = *record->object;
      if (object.metadata.name != claim || !object.status.allocation) continue;
      for (const auto& result : object.status.allocation->results) {
        devices.push_back(result.device);
      }
    }
    return devices;
  }
  PodAlignmentInfo AlignmentOf(const std::string& pod) {
    const auto info = node_.manager().View()->AlignmentOf(PodUid{"u-" + pod});
    EXPECT_THAT(info.status(), IsOk());
    return info.ok() ? *info : PodAlignmentInfo();
  }
  static TopologyHint Preferred(int node) {
    return {NumaMask::OfNode(node), true};
  }

  const std::string classes_ = ClassOf("gpu", kDriver) + ClassOf("port", kPort);
  NumaFolder machine_{2};
};

class NumaClaimsPolicyTest
    : public NumaClaimsTest,
      public ::testing::WithParamInterface<TopologyPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, NumaClaimsPolicyTest,
                         ::testing::Values(TopologyPolicy::kBestEffort,
                                           TopologyPolicy::kRestricted,
                                           TopologyPolicy::kSingleNumaNode));

// The first fit would be on node 0.
TEST_P(NumaClaimsPolicyTest, AClaimIsAllocatedWhereThePluginHasItsDevice) {
  Begin(GetParam());
  ServeNics({1});
  node_.Publish(classes_ + SliceOf(kDriver, {0, 1}) + ClaimOf("own", "gpu") +
                PodWith("p", {"own"}, 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(DevicesOf("own"), ElementsAre("d1"));
  const PodAlignmentInfo info = AlignmentOf("p");
  ASSERT_THAT(info.containers, SizeIs(1));
  EXPECT_EQ(info.containers[0].merged, Preferred(1));
}

TEST_P(NumaClaimsPolicyTest, ClaimsOfTwoDriversAreAllocatedOnOneNode) {
  Begin(GetParam());
  node_.Publish(classes_ + SliceOf(kDriver, {0, 1}) + SliceOf(kPort, {1}) +
                ClaimOf("a", "gpu") + ClaimOf("b", "port") +
                PodWith("p", {"a", "b"}, 0));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(DevicesOf("a"), ElementsAre("d1"));
  EXPECT_THAT(DevicesOf("b"), ElementsAre("d0"));
  EXPECT_EQ(AlignmentOf("p").containers[0].merged, Preferred(1));
}

// What a driver says nothing of is no matter of NUMA nodes.
TEST_P(NumaClaimsPolicyTest, DevicesOnNoNodeAreTakenInTheirOrder) {
  Begin(GetParam());
  ServeNics({1});
  node_.Publish(classes_ + SliceOf(kDriver, {0, 1}) + SliceOf(kPort, {-1, -1}) +
                ClaimOf("b", "port") + PodWith("p", {"b"}, 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(DevicesOf("b"), ElementsAre("d0"));
}

// Mask and preference are the same after a restart, before any plugin or
// driver has come back.
TEST_P(NumaClaimsPolicyTest, WhatAPodWasAlignedToIsKeptOverARestart) {
  Begin(GetParam());
  ServeNics({1, 1});
  const std::string all = classes_ + SliceOf(kDriver, {0, 1}) +
                          SliceOf(kPort, {0, 1}) + ClaimOf("own", "gpu") +
                          ClaimOf("b", "port") + PodWith("p", {"own"}, 1) +
                          PodWith("q", {"b"}, 0) + PodWith("r", {}, 1);
  node_.Publish(all);
  std::map<std::string, PodAlignmentInfo> before;
  for (const char* pod : {"p", "q", "r"}) {
    ASSERT_TRUE(node_.WaitFor(pod, PodState::kReady)) << pod;
    before[pod] = AlignmentOf(pod);
  }
  node_.Restart();
  for (const char* pod : {"p", "q", "r"}) {
    EXPECT_TRUE(AlignmentOf(pod) == before[pod]) << pod;
  }
  EXPECT_EQ(before["p"].containers[0].merged, Preferred(1));
  EXPECT_EQ(before["q"].containers[0].merged, Preferred(0));
  // It goes with the pod.
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.manager().View()->AlignmentOf(PodUid{"u-p"}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("u-p")));
}

TEST_F(NumaClaimsTest, APodWaitsForTheClaimThatIsInTheWay) {
  Begin(TopologyPolicy::kSingleNumaNode);
  ServeNics({1, 1});
  const std::string machine = classes_ + SliceOf(kDriver, {0, 1}) +
                              ClaimOf("taken", "gpu") + ClaimOf("own", "gpu");
  const std::string holder = PodWith("h", {"taken"}, 1);
  const std::string pod = PodWith("p", {"own"}, 1);
  node_.Publish(machine + holder);
  ASSERT_TRUE(node_.WaitFor("h", PodState::kReady));
  ASSERT_THAT(DevicesOf("taken"), ElementsAre("d1"));
  node_.Publish(machine + holder + pod);
  ASSERT_TRUE(node_.WaitForReason("p", "DevicesNotAligned"));
  const PodInfo waiting = node_.PodNamed("p");
  EXPECT_EQ(waiting.state, PodState::kWaiting);
  EXPECT_THAT(waiting.message,
              AllOf(HasSubstr("NUMA node 1"), HasSubstr("'default/taken'"),
                    HasSubstr("pod 'h'")));
  EXPECT_THAT(waiting.waiting_for,
              Contains(WaitingFor{WaitingFor::Kind::kFreeDevices, kDriver}));
  EXPECT_THAT(DevicesOf("own"), IsEmpty());
  node_.Publish(machine + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(DevicesOf("own"), ElementsAre("d1"));
}

TEST_F(NumaClaimsTest, APodWaitsForTheDeviceOfAPluginThatIsInTheWay) {
  Begin(TopologyPolicy::kRestricted);
  ServeNics({0, 1});
  const std::string machine =
      classes_ + SliceOf(kDriver, {1}) + ClaimOf("own", "gpu");
  const std::string other = PodWith("o", {}, 1);
  node_.Publish(machine + other);
  ASSERT_TRUE(node_.WaitFor("o", PodState::kReady));
  const std::string next = PodWith("next", {}, 1);
  node_.Publish(machine + other + next);
  ASSERT_TRUE(node_.WaitFor("next", PodState::kReady));
  ASSERT_THAT(Held("next", kNic), ElementsAre("1"));
  // Node 0 is free again, and the claim can only be on node 1.
  node_.Publish(machine + next);
  ASSERT_TRUE(node_.WaitUntilGone("o"));
  const std::string pod = PodWith("p", {"own"}, 1);
  node_.Publish(machine + next + pod);
  ASSERT_TRUE(node_.WaitForReason("p", "DevicesNotAligned"));
  EXPECT_THAT(node_.PodNamed("p").message,
              AllOf(HasSubstr("NUMA node 1"), HasSubstr("'default/next'")));
  EXPECT_THAT(DevicesOf("own"), IsEmpty());
  node_.Publish(machine + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kNic), ElementsAre("1"));
}

TEST_F(NumaClaimsTest, WhatCanNeverBeAlignedIsRejected) {
  Begin(TopologyPolicy::kRestricted);
  ServeNics({1});
  node_.Publish(classes_ + SliceOf(kDriver, {0}) + ClaimOf("own", "gpu") +
                PodWith("p", {"own"}, 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "TopologyAffinityError");
  EXPECT_THAT(DevicesOf("own"), IsEmpty());
}

TEST_F(NumaClaimsTest, UnderBestEffortTheSameIsAdmitted) {
  Begin(TopologyPolicy::kBestEffort);
  ServeNics({1});
  node_.Publish(classes_ + SliceOf(kDriver, {0}) + ClaimOf("own", "gpu") +
                PodWith("p", {"own"}, 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(DevicesOf("own"), ElementsAre("d0"));
  EXPECT_FALSE(AlignmentOf("p").containers[0].merged.preferred);
}

// A claim that needs both nodes is aligned to both, and to no less.
TEST_F(NumaClaimsTest, AClaimThatNeedsTwoNodesIsAdmittedByRestrictedOnly) {
  Begin(TopologyPolicy::kRestricted);
  node_.Publish(classes_ + SliceOf(kDriver, {0, 1}) + ClaimOf("own", "gpu", 2) +
                PodWith("p", {"own"}, 0));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(AlignmentOf("p").containers[0].merged,
            (TopologyHint{NumaMask(3), true}));
  node_.Stop();
  node_.options.topology.policy = TopologyPolicy::kSingleNumaNode;
  node_.Start();
  node_.Publish(classes_ + SliceOf(kDriver, {0, 1}) +
                ClaimOf("other", "gpu", 2) + PodWith("q", {"other"}, 0));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("q").reason, "TopologyAffinityError");
}

// The device of a claim that pods share is where it is.
TEST_F(NumaClaimsTest, AClaimThatIsSharedIsFollowed) {
  Begin(TopologyPolicy::kSingleNumaNode);
  ServeNics({1, 0, 0});
  const std::string machine =
      classes_ + SliceOf(kDriver, {0, 1}) + ClaimOf("shared", "gpu");
  const std::string first = PodWith("a", {"shared"}, 0);
  node_.Publish(machine + first);
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  ASSERT_THAT(DevicesOf("shared"), ElementsAre("d0"));
  const std::string second = PodWith("b", {"shared"}, 1);
  node_.Publish(machine + first + second);
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(Held("b", kNic), ElementsAre("1"));
  // No two NICs are left on its node.
  node_.Publish(machine + first + second + PodWith("c", {"shared"}, 2));
  ASSERT_TRUE(node_.WaitForReason("c", "DevicesNotAligned"));
  EXPECT_THAT(DevicesOf("shared"), ElementsAre("d0"));
}

/// KEP-5004: GPUs are devices of the driver.
constexpr char kGpuResource[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n";

/// One container with a GPU and a NIC.
std::string GpuAndNic(const std::string& name, const std::string& status = "") {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n  containers: [{{name: c, resources: {{limits: "
      "{{{1}: 1, {2}: 1}}}}}}]\n{3}---\n",
      name, kGpu, kNic, status);
}

/// The claim for its GPU as a control plane has allocated it, and its status.
std::string SpecialClaim(const std::string& pod, const std::string& device) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}-gpu, uid: c-{0}, annotations: "
      "{{resource.kubernetes.io/extended-resource-claim: \"true\"}}, "
      "ownerReferences: [{{apiVersion: v1, kind: Pod, name: {0}, uid: u-{0}, "
      "controller: true}}]}}\nspec: {{devices: {{requests: [{{name: r, "
      "exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\nstatus:\n  reservedFor: [{{resource: "
      "pods, name: {0}, uid: u-{0}}}]\n  allocation: {{devices: {{results: "
      "[{{request: r, driver: {1}, pool: node-1, device: {2}}}]}}}}\n---\n",
      pod, kDriver, device);
}
std::string SpecialStatus(const std::string& pod) {
  return fmt::format(
      "status:\n  extendedResourceClaimStatus:\n    resourceClaimName: {}-gpu\n"
      "    requestMappings: [{{containerName: c, resourceName: {}, "
      "requestName: r}}]\n",
      pod, kGpu);
}

// The claim for extended resources is allocated first, on the node that is
// common to both; the NICs follow it.
TEST_P(NumaClaimsPolicyTest, PluginsFollowTheClaimForExtendedResources) {
  Begin(GetParam());
  ServeNics({0, 1});
  node_.Publish(kGpuResource + SliceOf(kDriver, {1}) + GpuAndNic("p"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kNic), ElementsAre("1"));
  const PodAlignmentInfo info = AlignmentOf("p");
  ASSERT_THAT(info.containers, SizeIs(1));
  EXPECT_EQ(info.containers[0].merged, Preferred(1));
  ASSERT_THAT(info.containers[0].resources, SizeIs(2));
  EXPECT_EQ(info.containers[0].resources[1].provider, "claim");
  EXPECT_EQ(info.containers[0].resources[1].resource, kGpu);
  EXPECT_FALSE(info.containers[0].resources[1].informative);
}

// Below a scheduler the same claim has been allocated before; its hints are
// shown, and refuse nothing.
TEST_P(NumaClaimsPolicyTest, BelowASchedulerHintsOfThatClaimAreShown) {
  node_.options.policies.authority = Authority::kScheduler;
  Begin(GetParam());
  ServeNics({0});
  node_.Publish(kGpuResource + SliceOf(kDriver, {0, 1}) +
                SpecialClaim("p", "d1") + GpuAndNic("p", SpecialStatus("p")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const PodAlignmentInfo info = AlignmentOf("p");
  ASSERT_THAT(info.containers, SizeIs(1));
  EXPECT_EQ(info.containers[0].merged, Preferred(0));
  ASSERT_THAT(info.containers[0].resources, SizeIs(2));
  const TopologyHintsInfo& shown = info.containers[0].resources[1];
  EXPECT_EQ(shown.provider, "claim");
  EXPECT_EQ(shown.resource, kGpu);
  EXPECT_TRUE(shown.informative);
  ASSERT_TRUE(shown.hints.has_value());
  EXPECT_EQ(shown.hints->front(), Preferred(1));
}

// Where a file has allocated it, it is followed as any that others allocated.
TEST_P(NumaClaimsPolicyTest, PluginsFollowSuchAClaimThatAFileAllocated) {
  Begin(GetParam());
  ServeNics({0, 1});
  node_.Publish(kGpuResource + SliceOf(kDriver, {0, 1}) +
                SpecialClaim("p", "d1") + GpuAndNic("p", SpecialStatus("p")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kNic), ElementsAre("1"));
}

}  // namespace
}  // namespace devmgr
