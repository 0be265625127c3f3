// SPDX-License-Identifier: Apache-2.0
//
// Devices of drivers that did not work, where this node allocates: pods wait
// for them, and are judged again once they are offered. TestNode audits that.
#include <chrono>
#include <string>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/health_names.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

/// A class, a slice with one device, and a pod with a claim for it.
constexpr char kObjects[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {selectors: [{cel: {expression: 'device.driver == "
    "\"d.example.com\"'}}]}\n---\n"
    "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
    "s}\nspec: {driver: d.example.com, nodeName: node-1, pool: {name: node-1, "
    "generation: 1, resourceSliceCount: 1}, devices: [{name: d1}]}\n---\n"
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: q, "
    "uid: c-q}\nspec: {devices: {requests: [{name: r, exactly: "
    "{deviceClassName: gpu}}]}}\n---\n"
    "apiVersion: v1\nkind: Pod\nmetadata: {name: q, uid: u-q}\nspec:\n"
    "  nodeName: node-1\n  resourceClaims: [{name: own, resourceClaimName: "
    "q}]\n  containers: [{name: c, resources: {claims: [{name: own}]}}]\n---\n";

class WithheldDeviceTest : public DeviceNodeTest {
 protected:
  WithheldDeviceTest() {
    node_.options.node_name = "node-1";
    node_.options.health.policies[kDriver] = HealthPolicy::kDrain;
    node_.drivers.Register(kDriver);
  }
  void Report(device::Health health) {
    node_.drivers.ReportHealth(kDriver,
                               {{{"node-1", "d1"}, health, "", 60'000}});
    node_.Sync();
  }
  /// The device is broken, and the pod waits for it.
  void Withhold() {
    node_.Start();
    Report(kBad);
    node_.Publish(kObjects);
    ASSERT_TRUE(node_.WaitForReason("q", "CannotAllocateClaims"));
    EXPECT_THAT(node_.PodNamed("q").waiting_for,
                ::testing::Contains(WaitingFor{WaitingFor::Kind::kTaint,
                                               "d.example.com/node-1/d1"}));
  }
};

TEST_F(WithheldDeviceTest, APodGetsItOnceItHasWorkedForLongEnough) {
  node_.options.health.healthy_for = std::chrono::milliseconds(1);
  Withhold();
  Report(kGood);
  EXPECT_TRUE(node_.WaitFor("q", PodState::kReady));
}

TEST_F(WithheldDeviceTest, ARecheckGivesItAtOnce) {
  node_.options.health.healthy_for = std::chrono::hours(1);
  Withhold();
  Maintenance& maintenance = node_.manager().maintenance();
  EXPECT_THAT(
      maintenance.RecheckDevices(kDriver, "node-1/d1", ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reason")));
  EXPECT_THAT(maintenance.RecheckDevices(kDriver, "node-1/d2", "reseated"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node-1/d2")));
  EXPECT_THAT(
      maintenance.RecheckDevices(kDriver, "node-1/d1", "reseated"),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Healthy")));
  Report(kGood);
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kWaiting);
  EXPECT_TRUE(maintenance.RecheckDevices(kDriver, "", "reseated").ok());
  EXPECT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(MessagesOf("DeviceRechecked"),
              ::testing::ElementsAre(HasSubstr("'node-1/d1'")));
}

}  // namespace
}  // namespace devmgr
