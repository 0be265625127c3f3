// SPDX-License-Identifier: Apache-2.0
//
// What keeps devices from a simulated pod besides their holders: hardware that
// is in use by another name, taints that evict, devices that do not work.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/hardware.h"
#include "simulation/moment_bed.h"

namespace devmgr::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kAddress[] = "0000:3b:00.0";

/// Device `g0` of the driver and the only device of the plugin are one card.
class SimulatedHardwareTest : public SimulationTest {
 protected:
  SimulatedHardwareTest() {
    Add(std::string(kClass) +
        fmt::format(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: "
            "{{name: s}}\nspec:\n  driver: {}\n  nodeName: n1\n  pool: "
            "{{name: n1, generation: 1, resourceSliceCount: 1}}\n  devices: "
            "[{{name: g0, attributes: {{resource.kubernetes.io/pciBusID: "
            "{{string: \"{}\"}}}}}}]\n---\n",
            kDriver, kAddress));
    AddPlugin(kNic, {Device(kAddress)});
    moment_.plugin_hardware[{kNic, DeviceId(kAddress)}] =
        device::HardwareOf(DeviceId(kAddress));
  }
  static std::string NicPod(const std::string& name) {
    return PodText(name, "example.com/nic: 1");
  }
};

TEST_F(SimulatedHardwareTest, APluginsDeviceIsThatOfAClaimBeforeIt) {
  auto result = Try(GpuPod("a", 1) + NicPod("b"));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->pods, SizeIs(2));
  ASSERT_EQ(result->pods[0].verdict.kind, kAdmit)
      << result->pods[0].verdict.message;
  const SimulatedPod& second = result->pods[1];
  EXPECT_EQ(second.verdict.kind, kWait);
  EXPECT_EQ(second.verdict.reason, "DeviceHeldElsewhere");
  EXPECT_THAT(second.verdict.message, HasSubstr("default/a"));
  EXPECT_THAT(Counts(second), ElementsAre(Pair("taken-in-this-run", 1)));
  ASSERT_THAT(result->figures.resources, SizeIs(1));
  EXPECT_EQ(result->figures.resources[0].free, 0);
}

TEST_F(SimulatedHardwareTest, AClaimsDeviceIsThatOfAPluginsPod) {
  Run(NicPod("x"));
  auto result = Try(GpuPod("p", 1));
  ASSERT_TRUE(result.ok()) << result.status();
  const SimulatedPod& pod = result->pods.at(0);
  EXPECT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "DeviceHeldElsewhere");
  ASSERT_THAT(pod.refusals, SizeIs(1));
  ASSERT_THAT(pod.refusals[0].devices, SizeIs(1));
  EXPECT_EQ(pod.refusals[0].devices[0].reason, "busy");
  EXPECT_THAT(pod.refusals[0].devices[0].detail,
              testing::AllOf(HasSubstr("pod default/x"), HasSubstr(kAddress),
                             HasSubstr(kNic)));
  ASSERT_THAT(result->figures.drivers, SizeIs(1));
  EXPECT_EQ(result->figures.drivers[0].free, 0);
}

TEST_F(SimulatedHardwareTest, WithoutTheRuleNamesAloneCount) {
  moment_.hardware.one_holder = false;
  auto result = Try(GpuPod("a", 1) + NicPod("b"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->AllAdmitted());
}

TEST_F(SimulatedHardwareTest, AnotherNodeHasOtherCardsAtTheSameAddresses) {
  Run(GpuPod("x", 1));
  EXPECT_EQ(TryOne(NicPod("p")).verdict.kind, kWait);
  request_.view.base = SimulationBase::kLikeNode;
  request_.view.node_name = "n2";
  EXPECT_EQ(TryOne(NicPod("p")).verdict.kind, kAdmit);
  // Within that node they are one.
  auto result = Try(GpuPod("a", 1) + NicPod("b"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->pods.at(0).verdict.kind, kAdmit);
  EXPECT_EQ(result->pods.at(1).verdict.reason, "DeviceHeldElsewhere");
}

using SimulatedTaintTest = SimulationTest;

TEST_F(SimulatedTaintTest, AClaimThatPodsHaveToLeaveIsReservedForNoMore) {
  Add(std::string(kClass) + Slice("n1", 2) + Claim("c"));
  Run(PodText("x", "", "c"));
  EXPECT_EQ(TryOne(PodText("p", "", "c")).verdict.kind, kAdmit);
  Add("apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: "
      "broken}\nspec: {deviceSelector: {device: g0}, taint: {key: "
      "example.com/broken, effect: NoExecute}}\n---\n");
  const SimulatedPod pod = TryOne(PodText("p", "", "c"));
  EXPECT_EQ(pod.verdict.kind, kWait);
  EXPECT_THAT(pod.verdict.message,
              HasSubstr("claim default/c is reserved for no more pods"));
  EXPECT_THAT(pod.verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "default/c"}));
}

TEST_F(SimulatedTaintTest, APodThatHasToLeaveIsNotAdmittedAgain) {
  Add(std::string(kClass) + Slice("n1", 1) + Claim("c"));
  Run(PodText("x", "", "c"));
  const std::string uid =
      moment_.objects.pods.at(ObjectName{"default", "x"})->metadata.uid;
  auto record =
      std::make_shared<state::PodRecord>(*moment_.state.FindPod(PodUid{uid}));
  record->eviction = state::Eviction{"DeletionByDeviceTaintManager", "m", 1};
  moment_.state.Put(std::shared_ptr<const state::PodRecord>(record));
  const SimulatedPod pod = TryOne(PodText("x", "", "c"));
  EXPECT_EQ(pod.verdict.kind, kReject);
  EXPECT_EQ(pod.verdict.reason, "DeletionByDeviceTaintManager");
  // It holds its device until it has left.
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kWait);
}

TEST_F(SimulatedTaintTest, ADeviceThatDoesNotWorkIsGivenToNoPodHere) {
  Add(std::string(kClass) + Slice("n1", 1));
  moment_.withheld = {state::DeviceKey(kDriver, "n1", "g0")};
  const SimulatedPod pod = TryOne(GpuPod("p", 1));
  EXPECT_EQ(pod.verdict.kind, kWait);
  EXPECT_THAT(Counts(pod), ElementsAre(Pair("taint", 1)));
  request_.view.base = SimulationBase::kLikeNode;
  request_.view.node_name = "n2";
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kAdmit);
}

}  // namespace
}  // namespace devmgr::simulation
