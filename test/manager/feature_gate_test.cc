// SPDX-License-Identifier: Apache-2.0
//
// Each gate changes what it is for, and what pods hold outlives its turning.
// DRAExtendedResource: manager_life_test.cc; ResourceHealthStatus:
// device_health_test.cc.
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
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
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
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
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// DRA-055
TEST_F(FeatureGateTest, AnotherGroupsReservationIsNotThePods) {
  node_.options.feature_gates[kGroups] = true;
  node_.Start();
  node_.Publish(GroupClaim("other") + GroupPod("c1"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("is not allowed to use"));
}

// DW-31: a pod without a group.
TEST_F(FeatureGateTest, APodOfNoGroupIsNotOfEveryGroup) {
  node_.options.feature_gates[kGroups] = true;
  node_.Start();
  node_.Publish(GroupClaim("g") + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
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
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
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
  EXPECT_THAT(node_.manager().Claims(), IsEmpty());
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

TEST_F(FeatureGateTest, AnUnknownGateIsRefusedByName) {
  DeviceManagerOptions options;
  options.in_memory_ledger = true;
  options.feature_gates["DRAMagic"] = true;
  EXPECT_THAT(DeviceManager::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("feature gate 'DRAMagic' is not known")));
}

}  // namespace
}  // namespace devmgr
