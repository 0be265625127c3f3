// SPDX-License-Identifier: Apache-2.0
#include "admission/kept_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"

namespace devmgr::admission {
namespace {

using device::Healthy;
using device::Held;
using device::Live;
using device::Shortage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kCard[] = "example.com/card";

PodAlignmentInfo AlignedTo(TopologyPolicy policy, int node) {
  PodAlignmentInfo info;
  info.options.policy = policy;
  info.containers.push_back(
      {ContainerName("c"), {}, {NumaMask::OfNode(node), true}});
  return info;
}

/// A container that lacks a GPU, beside what others hold.
class KeptAlignmentTest : public ::testing::Test {
 protected:
  /// Devices `d0` and on, each on the node of its place; none for -1.
  void Have(const std::vector<int>& nodes) {
    std::vector<device::Device> devices;
    for (const int node : nodes) {
      device::Device device = Healthy("d" + std::to_string(devices.size()));
      if (node >= 0) device.numa_nodes = {node};
      devices.push_back(std::move(device));
    }
    inventories_[kCard] = Live(std::move(devices));
  }
  void Hold(const std::string& pod, const DeviceId& id) {
    EXPECT_TRUE(reservations_.Add(Held(pod, "app", {id}, kCard)).ok());
    inventories_[kCard].UpdateHeld({id}, [](const DeviceId&) { return true; });
  }
  device::PodPlan Plan(TopologyPolicy policy, int node) {
    claim::WantedDevices wanted{{"P"},
                                {{"c", device::ContainerKind::kApp, kCard, 1}}};
    return PlanAsAligned(Devices(), wanted, AlignedTo(policy, node));
  }
  claim::PluginDevices Devices() const {
    return {state_, inventories_, reservations_};
  }
  static std::vector<DeviceId> Chosen(const device::PodPlan& plan) {
    if (plan.reservations.size() != 1) return {};
    return device::IdsOf(plan.reservations[0].devices);
  }

  state::State state_;
  device::InventoryMap inventories_;
  device::ReservationTable reservations_;
};

TEST_F(KeptAlignmentTest, DevicesOfItsNodeComeFirst) {
  Have({0, 0, 1});
  EXPECT_THAT(Chosen(Plan(TopologyPolicy::kBestEffort, 1)),
              ElementsAre(DeviceId("d2")));
  EXPECT_THAT(Chosen(Plan(TopologyPolicy::kRestricted, 1)),
              ElementsAre(DeviceId("d2")));
}

TEST_F(KeptAlignmentTest, WithoutOneThereThePodInTheWayIsNamed) {
  Have({0, 0, 1});
  Hold("Q", "d2");
  EXPECT_THAT(Chosen(Plan(TopologyPolicy::kBestEffort, 1)),
              ElementsAre(DeviceId("d0")));
  const device::PodPlan plan = Plan(TopologyPolicy::kSingleNumaNode, 1);
  EXPECT_THAT(plan.reservations, IsEmpty());
  ASSERT_THAT(plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.shortages[0].kind, Shortage::Kind::kNotAligned);
  EXPECT_EQ(plan.shortages[0].requested, 1);
  EXPECT_EQ(plan.shortages[0].available, 0);
  EXPECT_EQ(plan.shortages[0].listed, 1);
  EXPECT_THAT(plan.shortages[0].holders, ElementsAre(PodUid{"Q"}));
  EXPECT_THAT(plan.shortages[0].reason, HasSubstr("NUMA node 1"));
}

TEST_F(KeptAlignmentTest, AResourceOnNoNodeIsNoMatter) {
  Have({-1, -1});
  EXPECT_THAT(Chosen(Plan(TopologyPolicy::kSingleNumaNode, 1)),
              ElementsAre(DeviceId("d0")));
  EXPECT_EQ(FreeDevicesOn(Devices(), kCard, NumaMask::OfNode(1)), 2);
  // Where another device is on a node, one on none is not there.
  Have({-1, 0});
  EXPECT_THAT(Plan(TopologyPolicy::kSingleNumaNode, 1).shortages, SizeIs(1));
  EXPECT_EQ(FreeDevicesOn(Devices(), kCard, NumaMask::OfNode(1)), 0);
  EXPECT_EQ(FreeDevicesOn(Devices(), kCard, NumaMask::OfNode(0)), 1);
}

// The plugin says no more on which nodes its devices are; one that another pod
// holds, and that it does not list, is known to be on one.
TEST_F(KeptAlignmentTest, ADeviceThatIsNotListedPutsNoResourceOnNodes) {
  Have({0});
  Hold("Q", "d0");
  inventories_[kCard].Report(
      1, {Healthy("d1")}, [](const DeviceId& id) { return id == "d0"; }, 0);
  EXPECT_THAT(Chosen(Plan(TopologyPolicy::kSingleNumaNode, 1)),
              ElementsAre(DeviceId("d1")));
}

TEST_F(KeptAlignmentTest, OfAContainerThatMayBeAnywhereNothingIsRequired) {
  const PodAlignmentInfo best = AlignedTo(TopologyPolicy::kBestEffort, 1);
  const PodAlignmentInfo only = AlignedTo(TopologyPolicy::kRestricted, 1);
  EXPECT_EQ(RequiredNodes(&only, ContainerName("c")), NumaMask::OfNode(1));
  EXPECT_EQ(RequiredNodes(&only, ContainerName("d")), std::nullopt);
  EXPECT_EQ(RequiredNodes(&best, ContainerName("c")), std::nullopt);
  EXPECT_EQ(RequiredNodes(nullptr, ContainerName("c")), std::nullopt);
  EXPECT_EQ(RequiredNodesText(&only, ContainerName("c")),
            " on NUMA node 1, to which container 'c' is aligned");
  EXPECT_EQ(RequiredNodesText(&best, ContainerName("c")), "");
}

}  // namespace
}  // namespace devmgr::admission
