// SPDX-License-Identifier: Apache-2.0
//
// What drivers answer for, held against what their claims were given.
#include "manager/manager_fixture.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

state::PreparedDevice Prepared(const std::string& device,
                               const std::string& cdi_device_id) {
  return {{"r"}, "pool-1", device, {cdi_device_id}, ""};
}

class UnallocatedDeviceTest : public ManagerTest {
 protected:
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason != "UnallocatedDevicePrepared") continue;
      EXPECT_TRUE(event.warning);
      told.push_back(event.object.ToString() + ": " + event.message);
    }
    return told;
  }
  void RunPod() {
    node_.Start();
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  }
};

// DW-35: once for each claim, and the pod gets what the driver says.
TEST_F(UnallocatedDeviceTest, ADeviceThatTheClaimWasNotGivenIsTold) {
  node_.drivers.Prepares(
      "c1", {Prepared("dev-1", "a.b/c=1"), Prepared("dev-2", "a.b/c=2"),
             Prepared("dev-3", "a.b/c=3")});
  RunPod();
  EXPECT_THAT(Told(),
              ElementsAre(HasSubstr(
                  "c1: DRA driver d.example.com prepared device pool-1/dev-2, "
                  "which the claim's allocation lacks")));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre("a.b/c=1", "a.b/c=2", "a.b/c=3"));
}

TEST_F(UnallocatedDeviceTest, WhatWasAllocatedIsNoNews) {
  node_.drivers.Prepares("c1", {Prepared("dev-1", "a.b/c=1")});
  RunPod();
  EXPECT_THAT(Told(), IsEmpty());
}

// As drivers of Kubernetes 1.30 and before answer.
TEST_F(UnallocatedDeviceTest, CdiNamesAloneTellNothing) {
  state::PreparedDevice device;
  device.cdi_device_ids = {"a.b/c=1"};
  node_.drivers.Prepares("c1", {device});
  RunPod();
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
