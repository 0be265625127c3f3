// SPDX-License-Identifier: Apache-2.0
#include "view/numa_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "topology/claim_hints.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using device::Healthy;
using device::Unhealthy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNicName[] = "example.com/nic";

SliceDevice OnNode(const std::string& name, DeviceAttribute nodes) {
  SliceDevice device;
  device.name = name;
  device.attributes.emplace(topology::kNumaNodeAttribute, std::move(nodes));
  return device;
}

class NumaViewsTest : public MomentTest {
 protected:
  void Machine(const std::vector<std::int64_t>& nodes) {
    auto numa = std::make_shared<NumaInfo>();
    for (const std::int64_t id : nodes) numa->nodes.emplace_back().id = id;
    numa->problems = {"odd"};
    moment_.numa = numa;
  }
  void Serve(std::vector<device::Device> list) {
    const device::Inventory inventory = device::Live(std::move(list));
    moment_.resources.insert_or_assign(
        kNicName,
        {inventory.state(), 0, inventory.figures(), inventory.devices()});
  }
  void Publish(const std::string& name, const std::string& node,
               std::vector<SliceDevice> devices) {
    auto slice = std::make_shared<ResourceSlice>();
    slice->driver = kDriver;
    slice->pool = "pool";
    slice->node_name = node;
    slice->devices = std::move(devices);
    objects_.resource_slices.insert_or_assign({"", name}, slice);
    Show();
  }
  void Allocate(const std::string& device, bool admin_access) {
    auto claim = std::make_shared<ResourceClaim>();
    claim->status.allocation.emplace().results = {
        {"r", kDriver, "pool", device, admin_access, ""}};
    objects_.claims.insert_or_assign({"ns", "c-" + device}, claim);
    Show();
  }
  void Show() {
    moment_.objects = std::make_shared<const ObjectSnapshot>(objects_);
  }
  /// Name, devices, used and healthy.
  static NumaDevicesInfo Count(const std::string& name, std::int64_t devices,
                               std::int64_t used, std::int64_t healthy) {
    return {name, name == kDriver, devices, used, healthy};
  }

  ObjectSnapshot objects_;
};

TEST_F(NumaViewsTest, DevicesOfPluginsAreCountedOnTheirNodes) {
  Machine({0, 1});
  auto pod = MakePod("a", state::PodPhase::kAdmitted);
  state::DeviceHold hold;
  hold.container = "main";
  hold.resource = kNicName;
  hold.phase = device::ReservationPhase::kCommitted;
  hold.devices = {{"d1", {}}};
  pod->holds = {hold};
  moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  Serve({Healthy("d0", {0}), Healthy("d1", {0}), Unhealthy("d2", {1}),
         Healthy("d3", {0, 1}), Healthy("d4"), Healthy("d5", {7})});
  const NumaInfo info = NumaOf(moment_);
  EXPECT_THAT(info.problems, ElementsAre("odd"));
  ASSERT_THAT(info.nodes, SizeIs(2));
  EXPECT_THAT(info.nodes[0].devices, ElementsAre(Count(kNicName, 3, 1, 3)));
  EXPECT_THAT(info.nodes[1].devices, ElementsAre(Count(kNicName, 2, 0, 1)));
  // d5 names a node that the machine does not have.
  EXPECT_THAT(info.nowhere, ElementsAre(Count(kNicName, 2, 0, 2)));
}

TEST_F(NumaViewsTest, OnAMachineOfOneNodeAllDevicesAreThere) {
  Machine({0});
  Serve({Healthy("d0"), Healthy("d1", {5})});
  const NumaInfo info = NumaOf(moment_);
  ASSERT_THAT(info.nodes, SizeIs(1));
  EXPECT_THAT(info.nodes[0].devices, ElementsAre(Count(kNicName, 2, 0, 2)));
  EXPECT_THAT(info.nowhere, IsEmpty());
}

TEST_F(NumaViewsTest, WhereNodesAreNotKnownDevicesAreOnNone) {
  Serve({Healthy("d0", {0})});
  const NumaInfo info = NumaOf(moment_);
  EXPECT_THAT(info.nodes, IsEmpty());
  EXPECT_THAT(info.nowhere, ElementsAre(Count(kNicName, 1, 0, 1)));
}

TEST_F(NumaViewsTest, DevicesOfDriversAreWhereTheirAttributeSays) {
  Machine({0, 1});
  Publish("ours", "n1",
          {OnNode("g0", std::int64_t{0}), OnNode("g1", std::int64_t{1}),
           OnNode("bad", std::int64_t{-1})});
  Publish("others", "n2", {OnNode("h0", std::int64_t{0})});
  // A device that two slices have is one.
  Publish("ours-again", "n1", {OnNode("g0", std::int64_t{0})});
  const NumaInfo info = NumaOf(moment_);
  EXPECT_THAT(info.nodes[0].devices, ElementsAre(Count(kDriver, 1, 0, 1)));
  EXPECT_THAT(info.nodes[1].devices, ElementsAre(Count(kDriver, 1, 0, 1)));
  EXPECT_THAT(info.nowhere, ElementsAre(Count(kDriver, 1, 0, 1)));
}

TEST_F(NumaViewsTest, DevicesOfOtherNodesInASharedSliceAreNotCounted) {
  Machine({0});
  auto slice = std::make_shared<ResourceSlice>();
  slice->driver = kDriver;
  slice->pool = "pool";
  slice->per_device_node_selection = true;
  slice->devices = {OnNode("here", std::int64_t{0}),
                    OnNode("elsewhere", std::int64_t{0})};
  slice->devices[0].node_name = SharedText("n1");
  slice->devices[1].node_name = SharedText("n2");
  objects_.resource_slices.insert_or_assign({"", "fabric"}, slice);
  Show();
  EXPECT_THAT(NumaOf(moment_).nodes[0].devices,
              ElementsAre(Count(kDriver, 1, 0, 1)));
}

// A driver that answers CDI names alone has prepared no device by its name.
TEST_F(NumaViewsTest, WhatClaimsHaveIsUsed) {
  Machine({0});
  Publish("s", "n1",
          {OnNode("g0", std::int64_t{0}), OnNode("g1", std::int64_t{0}),
           OnNode("g2", std::int64_t{0})});
  EXPECT_EQ(NumaOf(moment_).nodes[0].devices[0].used, 0);
  Allocate("g0", /*admin_access=*/false);
  Allocate("g1", /*admin_access=*/true);
  EXPECT_EQ(NumaOf(moment_).nodes[0].devices[0].used, 1)
      << "admin access takes nothing from others";
  auto claim = MakeClaim("held", Uid("p"));
  state::DriverRecord& part = claim->drivers[kDriver];
  part.phase = state::DriverPhase::kPrepared;
  part.boot_id = kBoot;
  state::PreparedDevice& prepared = part.devices.emplace_back();
  prepared.pool = "pool";
  prepared.device = "g2";
  auto pod = MakePod("p", state::PodPhase::kPreparing);
  pod->claims = {claim->uid};
  moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  EXPECT_EQ(NumaOf(moment_).nodes[0].devices[0].used, 2);
}

TEST_F(NumaViewsTest, PluginsAndDriversOfOneNameAreTwoLines) {
  Machine({0});
  Serve({Healthy("d0")});
  Publish("s", "n1", {OnNode("g0", std::int64_t{0})});
  EXPECT_THAT(NumaOf(moment_).nodes[0].devices,
              ElementsAre(Count(kNicName, 1, 0, 1), Count(kDriver, 1, 0, 1)));
}

TEST_F(NumaViewsTest, OfAStoppedLedgerOnlyWhatPodsHoldIsCounted) {
  Publish("s", "n1", {OnNode("g0", std::int64_t{0})});
  moment_.terms = nullptr;
  EXPECT_THAT(NumaOf(moment_).nowhere, IsEmpty());
}

}  // namespace
}  // namespace devmgr::view
