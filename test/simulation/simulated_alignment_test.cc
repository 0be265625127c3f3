// SPDX-License-Identifier: Apache-2.0
//
// Simulated pods under a policy of NUMA alignment: their devices of plugins and
// of claims are chosen along nodes, as at their admission.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/moment_bed.h"

namespace devmgr::simulation {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kPort[] = "port.example.com";  ///< The other driver.
constexpr char kPortClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "port}\nspec: {selectors: [{cel: {expression: 'device.driver == "
    "\"port.example.com\"'}}]}\n---\n";

/// Devices `g0` and on, each on the node of its place; on none for -1.
std::string SliceOn(const std::string& driver, const std::vector<int>& nodes) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s-{0}}}\nspec:\n  driver: {0}\n  nodeName: n1\n  pool: {{name: n1, "
      "generation: 1, resourceSliceCount: 1}}\n  devices: [",
      driver);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format("{{name: g{}", i);
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
                    int count) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: {1}, count: {2}}}}}]}}}}\n---\n",
      name, of_class, count);
}

std::string NicPod(const std::string& name, int nics,
                   const std::string& claim = "") {
  return PodText(name, nics > 0 ? fmt::format("{}: {}", kNic, nics) : "",
                 claim);
}

class SimulatedAlignmentTest : public SimulationTest {
 protected:
  void Align(TopologyPolicy policy,
             TopologyScope scope = TopologyScope::kContainer, int nodes = 2) {
    admission::AlignmentRules rules;
    rules.options.policy = policy;
    rules.options.scope = scope;
    rules.machine.nodes = NumaMask((std::uint64_t{1} << nodes) - 1);
    rules.claims_count = true;
    moment_.alignment =
        std::make_shared<const admission::AlignmentRules>(std::move(rules));
    moment_.drivers.insert(kPort);
    for (int i = 0; i < nodes; ++i) moment_.numa_nodes.push_back(i);
  }
  void AddNics(const std::vector<std::int64_t>& nodes) {
    std::vector<device::Device> list;
    for (const std::int64_t node : nodes) {
      list.push_back(Device(std::to_string(list.size())));
      list.back().numa_nodes = {node};
    }
    AddPlugin(kNic, std::move(list));
  }
  static std::vector<DeviceId> NicsOf(const SimulatedPod& pod) {
    for (const SimulatedContainer& one : pod.containers) {
      const auto found = one.devices.find(ResourceName(kNic));
      if (found != one.devices.end()) return found->second;
    }
    return {};
  }
  /// `device reason detail` of the refusals of claims.
  static std::vector<std::string> RowsOfClaims(const SimulatedPod& pod) {
    std::vector<std::string> rows;
    for (const RefusedRequest& request : pod.refusals) {
      if (request.claim.empty()) continue;
      for (const RefusedDevice& device : request.devices) {
        rows.push_back(device.device + " " + device.reason + " " +
                       device.detail);
      }
    }
    return rows;
  }
};

class AlignedPolicyTest : public SimulatedAlignmentTest,
                          public ::testing::WithParamInterface<TopologyPolicy> {
};
INSTANTIATE_TEST_SUITE_P(Policies, AlignedPolicyTest,
                         ::testing::Values(TopologyPolicy::kBestEffort,
                                           TopologyPolicy::kRestricted,
                                           TopologyPolicy::kSingleNumaNode));

// The first fit of the claim would be on node 0.
TEST_P(AlignedPolicyTest, AClaimIsWhereThePluginHasItsDevice) {
  Align(GetParam());
  Add(std::string(kClass) + SliceOn(kDriver, {0, 1}) + Claim("own"));
  AddNics({1});
  const SimulatedPod pod = TryOne(NicPod("p", 1, "own"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g1"));
}

// A claim that is made for an extended resource, and a plugin's devices of
// which the first ones are elsewhere.
TEST_P(AlignedPolicyTest, APluginsDevicesFollowTheClaimOfAnExtendedResource) {
  Align(GetParam());
  Add(std::string(kClass) + SliceOn(kDriver, {1}));
  AddNics({0, 1});
  const SimulatedPod pod =
      TryOne(PodText("p", "example.com/gpu: 1, example.com/nic: 1"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0"));
  EXPECT_THAT(NicsOf(pod), ElementsAre(DeviceId("1")));
}

// A claim that this node has allocated for another pod is followed.
TEST_P(AlignedPolicyTest, APluginsDevicesFollowAClaimThatIsShared) {
  Align(GetParam());
  Add(std::string(kClass) + SliceOn(kDriver, {1}) + Claim("shared"));
  AddNics({0, 1});
  Run(NicPod("first", 0, "shared"));
  const SimulatedPod pod = TryOne(NicPod("p", 1, "shared"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(NicsOf(pod), ElementsAre(DeviceId("1")));
}

TEST_F(SimulatedAlignmentTest, APodWaitsForTheClaimThatIsInTheWay) {
  Align(TopologyPolicy::kSingleNumaNode);
  Add(std::string(kClass) + SliceOn(kDriver, {0, 1}) + Claim("taken") +
      Claim("own"));
  AddNics({1, 1});
  Run(NicPod("holder", 1, "taken"));
  const SimulatedPod pod = TryOne(NicPod("p", 1, "own"));
  ASSERT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "DevicesNotAligned");
  EXPECT_THAT(pod.verdict.message,
              AllOf(HasSubstr("NUMA node 1"), HasSubstr("'default/taken'")));
  EXPECT_THAT(pod.verdict.waiting_for,
              Contains(WaitingFor{WaitingFor::Kind::kFreeDevices, kDriver}));
  EXPECT_THAT(RowsOfClaims(pod), ElementsAre("g0 numa on NUMA node 0",
                                             "g1 busy pod default/holder"));
  EXPECT_THAT(Counts(pod), Contains(Pair("numa", 1)));

  request_.view.minus = {{"default", "holder"}};
  EXPECT_EQ(TryOne(NicPod("p", 1, "own")).verdict.kind, kAdmit);
}

TEST_F(SimulatedAlignmentTest, APodWaitsForTheDeviceOfAPluginThatIsInTheWay) {
  Align(TopologyPolicy::kRestricted);
  Add(std::string(kClass) + SliceOn(kDriver, {1}) + Claim("own"));
  AddNics({1});
  Run(NicPod("holder", 1));
  moment_.inventories.clear();
  AddNics({1, 0});
  const SimulatedPod pod = TryOne(NicPod("p", 1, "own"));
  ASSERT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "DevicesNotAligned");
  EXPECT_THAT(pod.verdict.message, HasSubstr("'default/holder'"));
  ASSERT_THAT(pod.refusals, SizeIs(1));
  EXPECT_EQ(pod.refusals[0].request, "c/example.com/nic");
  EXPECT_EQ(pod.refusals[0].devices[0].reason, "busy");
  EXPECT_EQ(pod.refusals[0].devices[1].reason, "numa");
}

TEST_F(SimulatedAlignmentTest, WhatCanNeverBeAlignedIsRejected) {
  Align(TopologyPolicy::kSingleNumaNode);
  Add(std::string(kClass) + SliceOn(kDriver, {0, 1}) +
      ClaimOf("own", "gpu", 2));
  const SimulatedPod pod = TryOne(NicPod("p", 0, "own"));
  ASSERT_EQ(pod.verdict.kind, kReject);
  EXPECT_EQ(pod.verdict.reason, "TopologyAffinityError");
  EXPECT_THAT(RowsOfClaims(pod),
              ElementsAre("g0 numa on NUMA node 0", "g1 numa on NUMA node 1"));
  EXPECT_THAT(DevicesOf(pod), IsEmpty());
}

// Of no node, or of several, by the policy.
TEST_F(SimulatedAlignmentTest, RestrictedAdmitsWhatNeedsTwoNodes) {
  Align(TopologyPolicy::kRestricted);
  Add(std::string(kClass) + SliceOn(kDriver, {0, 1}) +
      ClaimOf("own", "gpu", 2));
  const SimulatedPod pod = TryOne(NicPod("p", 0, "own"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0", "n1/g1"));
}

TEST_F(SimulatedAlignmentTest, UnderBestEffortWhatCannotBeAlignedIsAdmitted) {
  Align(TopologyPolicy::kBestEffort);
  Add(std::string(kClass) + SliceOn(kDriver, {0}) + Claim("own"));
  AddNics({1});
  const SimulatedPod pod = TryOne(NicPod("p", 1, "own"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0"));
}

// Each pod takes from those after it what it has on its node.
TEST_F(SimulatedAlignmentTest, CopiesAreCountedByNode) {
  Align(TopologyPolicy::kSingleNumaNode);
  Add(std::string(kClass) + SliceOn(kDriver, {0, 0, 0, 1, 1, 1}));
  request_.count_fits = true;
  // One device of each node is left over.
  auto result = Try(GpuPod("p", 2));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fit->copies, 2U);
  EXPECT_EQ(result->fit->ended_by, "taken-in-this-run");
  EXPECT_EQ(result->pods.back().verdict.reason, "DevicesNotAligned");
}

TEST_F(SimulatedAlignmentTest, UnderTheScopePodAllContainersAreOnOneNode) {
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
      "  resourceClaims: [{name: ca, resourceClaimName: a}, {name: cb, "
      "resourceClaimName: b}]\n  containers:\n"
      "  - {name: c, resources: {claims: [{name: ca}]}}\n"
      "  - {name: d, resources: {claims: [{name: cb}]}}\n---\n";
  const std::string objects = std::string(kClass) + kPortClass +
                              SliceOn(kDriver, {0, 1}) + SliceOn(kPort, {1}) +
                              Claim("a") + ClaimOf("b", "port", 1);
  Add(objects);
  Align(TopologyPolicy::kSingleNumaNode, TopologyScope::kPod);
  SimulatedPod tried = TryOne(pod);
  ASSERT_EQ(tried.verdict.kind, kAdmit) << tried.verdict.message;
  EXPECT_THAT(DevicesOf(tried), ElementsAre("n1/g1", "n1/g0"));

  Align(TopologyPolicy::kSingleNumaNode, TopologyScope::kContainer);
  tried = TryOne(pod);
  ASSERT_EQ(tried.verdict.kind, kAdmit) << tried.verdict.message;
  EXPECT_THAT(DevicesOf(tried), ElementsAre("n1/g0", "n1/g0"));
}

// Without the attribute there is nothing to go by.
TEST_F(SimulatedAlignmentTest, DevicesOnNoNodeAreTakenInTheirOrder) {
  Align(TopologyPolicy::kSingleNumaNode);
  Add(std::string(kClass) + SliceOn(kDriver, {-1, -1}) + Claim("own"));
  AddNics({1});
  const SimulatedPod pod = TryOne(NicPod("p", 1, "own"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0"));
}

// A node that does not exist yet: its devices come with the request.
TEST_F(SimulatedAlignmentTest, PluginsOfTheRequestAreAligned) {
  Align(TopologyPolicy::kSingleNumaNode);
  Add(std::string(kClass) + SliceOn(kDriver, {0}) + Claim("own"));
  request_.view.plugins = {{ResourceName(kNic), 1, {{1, 1}}}};
  EXPECT_EQ(TryOne(NicPod("p", 1, "own")).verdict.kind, kReject);
  request_.view.plugins = {{ResourceName(kNic), 2, {{1, 1}, {0, 1}}}};
  EXPECT_EQ(TryOne(NicPod("p", 1, "own")).verdict.kind, kAdmit);
}

// The hints of claims cost searches, which are steps as any.
TEST_F(SimulatedAlignmentTest, AllSearchesTogetherTakeTheSteps) {
  Add(std::string(kClass) + SliceOn(kDriver, {0, 0, 1, 1}) +
      ClaimOf("own", "gpu", 2));
  const std::uint64_t plain = TryOne(NicPod("p", 0, "own")).steps;
  Align(TopologyPolicy::kSingleNumaNode);
  const SimulatedPod aligned = TryOne(NicPod("p", 0, "own"));
  ASSERT_EQ(aligned.verdict.kind, kAdmit) << aligned.verdict.message;
  EXPECT_GT(aligned.steps, plain);

  request_.steps = aligned.steps - 1;
  auto result = Try(NicPod("p", 0, "own"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->pods[0].verdict.reason, kInterruptedReason);
  request_.steps = aligned.steps;
  result = Try(NicPod("p", 0, "own"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->interrupted);
}

// They are asked on the manager's thread only.
// What an admitted pod is aligned to stands, whatever the policy is now.
TEST_F(SimulatedAlignmentTest, AfterABootAPodIsWhereItWas) {
  AddNics({0, 1});
  Run(NicPod("a", 1));
  const PodUid uid{moment_.of_source.pods.at({"default", "a"})->metadata.uid};
  state::PodRecord record = *moment_.state.FindPod(uid);
  record.boot_id = "boot-0";
  record.holds.at(0).phase = device::ReservationPhase::kReleased;
  PodAlignmentInfo alignment;
  alignment.options.policy = TopologyPolicy::kSingleNumaNode;
  alignment.containers.push_back(
      {ContainerName("c"), {}, {NumaMask::OfNode(1), true}});
  record.alignment =
      std::make_shared<const PodAlignmentInfo>(std::move(alignment));
  moment_.state.Put(
      std::make_shared<const state::PodRecord>(std::move(record)));
  for (const auto policy :
       {TopologyPolicy::kNone, TopologyPolicy::kSingleNumaNode}) {
    Align(policy);
    EXPECT_THAT(NicsOf(TryOne(NicPod("a", 1))), ElementsAre(DeviceId("1")))
        << TopologyPolicyName(policy);
  }
}

TEST_F(SimulatedAlignmentTest, HintsOfAnEmbedderAreNamedAsNotKnown) {
  moment_.hint_providers = {"cpu"};
  EXPECT_THAT(TryOne(NicPod("p", 0)).notes, IsEmpty());
  Align(TopologyPolicy::kBestEffort);
  EXPECT_THAT(TryOne(NicPod("p", 0)).notes, ElementsAre(HasSubstr("'cpu'")));
  Align(TopologyPolicy::kNone);
  EXPECT_THAT(TryOne(NicPod("p", 0)).notes, Not(Contains(HasSubstr("cpu"))));
}

}  // namespace
}  // namespace devmgr::simulation
