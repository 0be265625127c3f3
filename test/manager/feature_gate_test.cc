// SPDX-License-Identifier: Apache-2.0
//
// Each gate changes what it is for, and what pods hold outlives its turning.
// Health: dra_health_test.cc and device_health_test.cc, too.
#include <algorithm>
#include <map>

#include "common/feature_gates.h"
#include "common/kubelet_gates.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class FeatureGateTest : public ManagerTest {
 protected:
  void RestartWith(const std::string& gate, bool on) {
    node_.Stop();
    node_.options.feature_gates[gate] = on;
    node_.Start();
  }
};

constexpr char kGroups[] = "DRAWorkloadResourceClaims";
constexpr char kOptional[] = "DRAOptionalNodeOperations";

/// Pod `p` of the group `g`.
std::string GroupPod(const std::string& claim) {
  return PodYaml("p", "u-p", {claim}, "  schedulingGroup: {podGroupName: g}\n");
}

std::string GroupClaim(const std::string& group) {
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
         "metadata: {name: c1, uid: u-c}\nspec: {devices: {requests: [{name: "
         "r, exactly: {deviceClassName: c}}]}}\n"
         "status:\n  allocation:\n    devices:\n      results:\n"
         "      - {request: r, driver: d.example.com, pool: pool-1, device: "
         "dev-1}\n"
         "  reservedFor:\n"
         "  - {apiGroup: scheduling.k8s.io, resource: podgroups, name: " +
         group + ", uid: u-g}\n---\n";
}

// DRA-053, DRA-054
TEST_F(FeatureGateTest, PodGroupsHaveClaimsReservedWithTheGateOnly) {
  node_.Start();
  node_.Publish(GroupClaim("g") + GroupPod("c1"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("is not allowed to use ResourceClaim c1"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  RestartWith(kGroups, true);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              UnorderedElementsAre(Prepare(kDriver, {"c1"})));
  // Off again under a running pod: it keeps what it has.
  RestartWith(kGroups, false);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"),
              UnorderedElementsAre("d.example.com/x=c1"));
  RestartWith(kGroups, true);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  RestartWith(kGroups, false);
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// DRA-055
TEST_F(FeatureGateTest, AnotherGroupsReservationIsNotThePods) {
  node_.options.feature_gates[kGroups] = true;
  node_.Start();
  node_.Publish(GroupClaim("other") + GroupPod("c1"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("is not allowed to use"));
}

// DW-31: a pod without a group.
TEST_F(FeatureGateTest, APodOfNoGroupIsNotOfEveryGroup) {
  node_.options.feature_gates[kGroups] = true;
  node_.Start();
  node_.Publish(GroupClaim("g") + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("is not allowed to use"));
}

std::string SkippingClaim() {
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
         "metadata: {name: c1, uid: u-c}\nspec: {devices: {requests: [{name: "
         "r, exactly: {deviceClassName: c}}]}}\n"
         "status:\n  allocation:\n    devices:\n      results:\n"
         "      - {request: r, driver: x.example.com, pool: pool-1, device: "
         "dev-1, skipNodeOperations: ['*']}\n"
         "  reservedFor: [{resource: pods, name: p, uid: u-p}]\n---\n";
}

// DRA-108, DRA-110
TEST_F(FeatureGateTest, DevicesDoWithoutCallsWithTheGateOnly) {
  node_.Start();
  node_.Publish(SkippingClaim() + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitForReason("p", "FeatureGateDisabled"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("DRAOptionalNodeOperations feature gate is disabled on "
                        "kubelet"));
  // Its driver is not there, and need not be.
  RestartWith(kOptional, true);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  RestartWith(kOptional, false);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.manager().View()->Claims(), IsEmpty());
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

// DRA-073, DRA-074
TEST_F(FeatureGateTest, ExtendedResourcesComeByClaimsWithTheGateOnly) {
  constexpr char kGate[] = "DRAExtendedResource";
  node_.options.feature_gates[kGate] = false;
  node_.Start();
  node_.Publish(
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]\n"
      "status:\n  extendedResourceClaimStatus:\n    resourceClaimName: c1\n"
      "    requestMappings:\n    - {containerName: c, resourceName: "
      "example.com/gpu, requestName: r}\n");
  ASSERT_TRUE(node_.WaitForReason("p", "ExtendedResourceNotMapped"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  RestartWith(kGate, true);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  RestartWith(kGate, false);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  RestartWith(kGate, true);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  RestartWith(kGate, false);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// DRA-075
TEST_F(FeatureGateTest, SharesOfDevicesHaveIdsWithTheGateOnly) {
  constexpr char kGate[] = "DRAConsumableCapacity";
  const auto share_of = [&](const std::string& pod) -> std::string {
    const auto held = node_.manager().View()->HeldClaims(node_.UidOf(pod), "c");
    if (!held.ok() || held->claims.size() != 1) return "no claim";
    if (held->claims[0].devices.size() != 1) return "no device";
    return held->claims[0].devices[0].share_id;
  };
  node_.drivers.Prepares("c1", {{{}, "pool-1", "dev-1", {"v.com/c=1"}, "s1"}});
  node_.drivers.Prepares("c2", {{{}, "pool-1", "dev-1", {"v.com/c=2"}, "s2"}});
  const std::string first =
      ClaimYaml("c1", "u-c1", {kDriver}, {"u-p"}) + PodYaml("p", "u-p", {"c1"});
  const std::string second =
      ClaimYaml("c2", "u-c2", {kDriver}, {"u-q"}) + PodYaml("q", "u-q", {"c2"});
  node_.Start();
  node_.Publish(first);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(share_of("p"), "s1");
  RestartWith(kGate, false);
  EXPECT_EQ(share_of("p"), "s1") << "it keeps what it has";
  node_.Publish(first + second);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_EQ(share_of("q"), "");
  RestartWith(kGate, true);
  EXPECT_EQ(share_of("p"), "s1");
  EXPECT_EQ(share_of("q"), "");
  EXPECT_THAT(node_.Resolve("q", "c"), ElementsAre("v.com/c=2"));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// DRA-164, DRA-166
TEST_F(FeatureGateTest, HealthAndItsTextsAreToldWithTheirGatesOnly) {
  constexpr char kHealth[] = "ResourceHealthStatus";
  constexpr char kTexts[] = "ResourceHealthStatusMessage";
  const auto told = [&]() -> std::string {
    const PodInfo pod = node_.PodNamed("p");
    if (pod.allocated_resources.empty()) return "nothing";
    const ResourceHealth& device =
        pod.allocated_resources[0].resources[0].resources[0];
    return std::string(device.health.name()) + ":" + device.message;
  };
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.drivers.ReportHealth(
      kDriver,
      {{{"pool-1", "dev-1"}, device::Health::kUnhealthy, "too hot", 600'000}});
  while (node_.store.Load().healths.empty()) node_.manager().View()->Node();
  EXPECT_EQ(told(), "Unhealthy:too hot");
  RestartWith(kTexts, false);
  EXPECT_EQ(told(), "Unhealthy:");
  RestartWith(kHealth, false);
  EXPECT_EQ(told(), "nothing");
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  RestartWith(kHealth, true);
  RestartWith(kTexts, true);
  EXPECT_EQ(told(), "Unhealthy:too hot");
}

// A gate that is added has its test here.
TEST_F(FeatureGateTest, TheseAreAllThatThereAre) {
  std::vector<std::string> names;
  for (const FeatureGate& gate : FeatureGates()) {
    names.push_back((gate.on_by_default ? "on " : "off ") +
                    std::string(gate.name));
  }
  EXPECT_THAT(
      names,
      ElementsAre("on DRAConsumableCapacity", "on DRAExtendedResource",
                  "off DRAOptionalNodeOperations",
                  "off DRAWorkloadResourceClaims", "on ResourceHealthStatus",
                  "on ResourceHealthStatusMessage"));
}

// A kubelet's list used to refuse the start.
TEST_F(FeatureGateTest, AKubeletsListIsTakenAndWhatMeansNothingIsToldOnce) {
  for (const KubeletGate& gate : KubeletGates()) {
    if (gate.until < kLastKnownRelease) continue;
    node_.options.feature_gates[std::string(gate.name)] =
        gate.locked_since == 0 || gate.locked_to;
  }
  node_.options.feature_gates["DRAAdminAccess"] = false;
  node_.options.feature_gates["DynamicResourceAllocation"] = false;
  node_.Start();
  std::vector<std::string> idle, locked;
  for (const EventInfo& event : node_.manager().Events(0)) {
    if (event.reason == "FeatureGatesWithoutEffect") {
      EXPECT_TRUE(event.warning);
      idle.push_back(event.message);
    } else if (event.reason == "FeatureGatesAgainstLock") {
      EXPECT_TRUE(event.warning);
      locked.push_back(event.message);
    }
  }
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_THAT(idle[0],
              AllOf(HasSubstr("NodeSwap"), HasSubstr("AllBeta"),
                    Not(HasSubstr(kGroups)), Not(HasSubstr("DRAAdminAccess"))));
  ASSERT_EQ(locked.size(), 1u);
  EXPECT_THAT(locked[0],
              AllOf(HasSubstr("DRAAdminAccess=false (locked to true since "
                              "Kubernetes 1.36; it turns nothing here)"),
                    HasSubstr("DynamicResourceAllocation=false (locked to true "
                              "since Kubernetes 1.35; it stays on here)")));
}

TEST_F(FeatureGateTest, AListThatCannotBeMetIsRefused) {
  const auto open = [](const std::map<std::string, bool>& gates) {
    DeviceManagerOptions options;
    options.ledger.in_memory = true;
    options.feature_gates = gates;
    return DeviceManager::Open(options).status();
  };
  EXPECT_THAT(open({{kGroups, true}, {"GenericWorkload", false}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'DRAWorkloadResourceClaims' needs "
                                 "'GenericWorkload'")));
}

TEST_F(FeatureGateTest, AnUnknownGateIsRefusedByName) {
  DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.feature_gates["DRAMagic"] = true;
  EXPECT_THAT(DeviceManager::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("feature gate 'DRAMagic' is not known")));
}

}  // namespace
}  // namespace devmgr
