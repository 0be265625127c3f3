// SPDX-License-Identifier: Apache-2.0
#include "view/device_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "view/health_views.h"
#include "view/moment_fixture.h"
#include "view/node_view.h"

namespace devmgr::view {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A Ready pod `p` with claim `c`, for which kDriver prepared `held`.
class DeviceViewsTest : public MomentTest {
 protected:
  DeviceViewsTest() {
    auto claim = MakeClaim("c", Uid("p"));
    state::DriverRecord& part = claim->drivers[kDriver];
    part.phase = state::DriverPhase::kPrepared;
    part.boot_id = kBoot;
    state::PreparedDevice device;
    device.pool = "pool";
    device.device = "held";
    device.cdi_device_ids = {"example.com/gpu=held"};
    part.devices = {device};
    auto pod = MakePod("p", state::PodPhase::kReady);
    pod->claims = {claim->uid};
    pod->needs = {{"main", false, {{claim->uid, "r", "", "gpu"}}}};
    claim_ = claim;
    moment_.state.Put(claim_);
    Put(pod);
  }

  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  void Publish(ObjectSnapshot objects) {
    moment_.objects =
        std::make_shared<const ObjectSnapshot>(std::move(objects));
  }
  static void AddClass(const std::string& name, const std::string& resource,
                       ObjectSnapshot* objects) {
    auto item = std::make_shared<DeviceClass>();
    item->metadata.name = name;
    item->extended_resource_name = resource;
    item->selectors = {"device.driver == 'gpu.example.com'"};
    objects->device_classes.insert_or_assign({"", name}, std::move(item));
  }
  static void AddSlice(const std::string& name, const std::string& node,
                       const std::vector<std::string>& devices,
                       ObjectSnapshot* objects) {
    auto slice = std::make_shared<ResourceSlice>();
    slice->driver = kDriver;
    slice->pool = "pool";
    slice->node_name = node;
    for (const std::string& device : devices) {
      slice->devices.push_back({device, {}, {}});
    }
    objects->resource_slices.insert_or_assign({"", name}, std::move(slice));
  }
  void Say(const std::string& device, device::Health health,
           const std::string& message) {
    device::DriverHealth known;
    known.Report({{{"pool", device}, health, message, 30'000}}, {0, 1'000});
    moment_.health.drivers.insert_or_assign(kDriver, known);
  }
  std::vector<ContainerResourceStatus> Allocated() const {
    return AllocatedResourcesOf(moment_, *moment_.state.FindPod(Uid("p")));
  }

  std::shared_ptr<const state::ClaimRecord> claim_;
};

TEST_F(DeviceViewsTest, SlicesAddWhatIsNotHeld) {
  ObjectSnapshot objects;
  AddSlice("ours", "n1", {"held", "free"}, &objects);
  AddSlice("others", "n2", {"elsewhere"}, &objects);
  Publish(objects);
  const std::vector<DeviceInfo> devices = DevicesOf(moment_);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].device, "held");
  EXPECT_THAT(devices[0].used_by, ElementsAre("default/p"));
  EXPECT_EQ(devices[1].device, "free");
  EXPECT_THAT(devices[1].used_by, IsEmpty());
}

// Its devices say on which node they are.
TEST_F(DeviceViewsTest, ASliceOfSeveralNodesAddsTheDevicesOfThisOne) {
  ObjectSnapshot objects;
  AddSlice("fabric", "", {"here", "elsewhere", "everywhere"}, &objects);
  auto slice = std::make_shared<ResourceSlice>(
      *objects.resource_slices.at({"", "fabric"}));
  slice->per_device_node_selection = true;
  slice->devices[0].node_name = SharedText("n1");
  slice->devices[1].node_name = SharedText("n2");
  slice->devices[2].all_nodes = true;
  objects.resource_slices.insert_or_assign({"", "fabric"}, slice);
  Publish(objects);
  std::vector<std::string> names;
  for (const DeviceInfo& device : DevicesOf(moment_)) {
    names.push_back(device.device);
  }
  EXPECT_THAT(names, ElementsAre("held", "here", "everywhere"));
}

TEST_F(DeviceViewsTest, DevicesOfADriverThatSaysNothingHaveNoHealth) {
  EXPECT_EQ(DevicesOf(moment_).at(0).health, std::nullopt);
  Say("held", device::Health::kUnhealthy, "hot");
  EXPECT_EQ(DevicesOf(moment_).at(0).health, DeviceHealth::kUnhealthy);
  EXPECT_EQ(DevicesOf(moment_).at(0).health_reason, "hot");
  moment_.steady_ms = 30'001;  // The lease is over.
  EXPECT_EQ(DevicesOf(moment_).at(0).health, DeviceHealth::kUnknown);
}

TEST_F(DeviceViewsTest, WhatAnEarlierProcessHeardIsOver) {
  Say("held", device::Health::kHealthy, "");
  moment_.health.over.insert_or_assign(
      {kDriver, "pool", "held"}, {device::Health::kUnknown, "rebooted", 0, 1});
  EXPECT_EQ(DevicesOf(moment_).at(0).health, DeviceHealth::kUnknown);
  EXPECT_EQ(DevicesOf(moment_).at(0).health_reason, "rebooted");
}

TEST_F(DeviceViewsTest, APodShowsTheHealthOfItsClaims) {
  Say("held", device::Health::kUnhealthy, "hot");
  ASSERT_THAT(Allocated(), SizeIs(1));
  EXPECT_EQ(Allocated()[0].container, "main");
  ASSERT_THAT(Allocated()[0].resources, SizeIs(1));
  const ResourceStatus status = Allocated()[0].resources[0];
  EXPECT_EQ(status.name, "claim:gpu/r");
  EXPECT_EQ(status.resources.at(0).resource_id, "example.com/gpu=held");
  EXPECT_EQ(status.resources.at(0).health, DeviceHealth::kUnhealthy);
  EXPECT_EQ(status.resources.at(0).message, "hot");
}

TEST_F(DeviceViewsTest, APodThatIsReleasedShowsItsLastHealth) {
  const ContainerResourceStatus last{"main", {{"claim:gpu/r", {}}}};
  moment_.health.last.insert_or_assign(Uid("p"), {last});
  moment_.state.Erase(claim_->uid);
  EXPECT_THAT(Allocated(), ElementsAre(last));
}

TEST_F(DeviceViewsTest, WhatAContainerHasOfPluginsAndOfClaimsIsOneList) {
  auto pod =
      std::make_shared<state::PodRecord>(*moment_.state.FindPod(Uid("p")));
  pod->needs.insert(pod->needs.begin(), {"first", true, {}});
  for (const char* container : {"main", "first"}) {
    state::DeviceHold hold;
    hold.container = container;
    hold.resource = "example.com/nic";
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{"d0", {}}};
    pod->holds.push_back(hold);
  }
  Put(pod);
  ASSERT_THAT(Allocated(), SizeIs(2));
  EXPECT_EQ(Allocated()[0].container, "first");
  ASSERT_THAT(Allocated()[1].resources, SizeIs(2));
  EXPECT_EQ(Allocated()[1].resources[0].name, "claim:gpu/r");
  EXPECT_EQ(Allocated()[1].resources[1].name, "example.com/nic");
}

TEST_F(DeviceViewsTest, ClassesAddTheirNames) {
  ObjectSnapshot objects;
  AddClass("a", "example.com/gpu", &objects);
  AddClass("b", "example.com/gpu", &objects);
  AddClass("c", "", &objects);
  const std::vector<DeviceClassInfo> classes = DeviceClassesOf(objects);
  ASSERT_THAT(classes, SizeIs(3));
  EXPECT_EQ(classes[0].shadowed_by, "");
  EXPECT_EQ(classes[1].shadowed_by, "a");
  EXPECT_EQ(classes[2].implicit_resource_name,
            "deviceclass.resource.kubernetes.io/c");
  Publish(objects);
  const std::vector<ResourceInfo> resources = ResourcesOf(moment_);
  ASSERT_THAT(resources, SizeIs(1));
  EXPECT_EQ(resources[0].name, "example.com/gpu");
  EXPECT_EQ(resources[0].owner, ResourceOwner::kDeviceClass);
  EXPECT_EQ(resources[0].device_class, "a");
  EXPECT_EQ(resources[0].held, 0);
  EXPECT_THAT(resources[0].drivers, ElementsAre(kDriver));
}

TEST_F(DeviceViewsTest, WhatIsHeldThroughAClassIsCounted) {
  const std::string implicit = "deviceclass.resource.kubernetes.io/c";
  auto pod =
      std::make_shared<state::PodRecord>(*moment_.state.FindPod(Uid("p")));
  pod->needs = {{"main", false, {{claim_->uid, "r", implicit, ""}}}};
  Put(pod);
  ObjectSnapshot objects;
  AddClass("c", "", &objects);
  Publish(objects);
  const std::vector<ResourceInfo> resources = ResourcesOf(moment_);
  ASSERT_THAT(resources, SizeIs(1));
  EXPECT_EQ(resources[0].name, implicit);
  EXPECT_EQ(resources[0].held, 1);
  EXPECT_EQ(resources[0].device_class, "c");
}

TEST_F(DeviceViewsTest, OfAPodThatHoldsNothingClaimsAreMissing) {
  auto pod = std::make_shared<Pod>();
  pod->metadata.ns = "default";
  pod->metadata.name = "new";
  pod->metadata.uid = "uid-new";
  Container container;
  container.name = "main";
  pod->spec.containers = {container};
  ObjectSnapshot objects;
  objects.pods.insert_or_assign({"default", "new"}, pod);
  Publish(objects);
  const auto view = NodeViewOf(moment_, {});
  const auto claims = view->HeldClaims(Uid("new"), "main");
  ASSERT_TRUE(claims.ok());
  EXPECT_THAT(claims->claims, IsEmpty());
  EXPECT_THAT(view->HeldClaims(Uid("p"), "main")->claims, SizeIs(1));
}

// It works by now, and failed not long ago.
TEST_F(DeviceViewsTest, ADeviceOnProbationSaysWhyNoPodGetsIt) {
  device::InventoryDevice works;
  works.device = {"d0", device::Health::kHealthy, {}};
  works.withheld = true;
  device::InventoryDevice fails = works;
  fails.device = {"d1", device::Health::kUnhealthy, {}};
  const device::InventoryDevices list(
      std::vector<device::InventoryDevice>{works, fails});
  moment_.resources.insert_or_assign(
      "example.com/nic", {device::EndpointState::kLive, 0, {}, list});
  std::vector<std::string> reasons;
  for (const DeviceInfo& device : DevicesOf(moment_)) {
    if (!device.resource.empty()) reasons.push_back(device.health_reason);
  }
  EXPECT_THAT(reasons,
              ElementsAre("reported by the plugin; no pod gets it before it "
                          "has worked for long enough",
                          "reported by the plugin"));
  EXPECT_THAT(AllocatableOf(moment_), IsEmpty());
}

// Those are not offered to the scheduler.
TEST_F(DeviceViewsTest, DevicesForPodsOfThisNodeAreCountedApart) {
  Resource resource;
  resource.state = device::EndpointState::kLive;
  resource.figures = {8, 6};
  resource.local_set = 2;
  moment_.resources.insert_or_assign("example.com/nic", resource);
  ASSERT_THAT(ResourcesOf(moment_), SizeIs(1));
  EXPECT_EQ(ResourcesOf(moment_)[0].capacity, 8);
  EXPECT_EQ(ResourcesOf(moment_)[0].local, 2);
  EXPECT_EQ(ResourcesOf(moment_)[0].allocatable, 4);
  // So many do not work.
  resource.figures = {8, 1};
  moment_.resources.insert_or_assign("example.com/nic", resource);
  EXPECT_EQ(ResourcesOf(moment_)[0].local, 1);
  EXPECT_EQ(ResourcesOf(moment_)[0].allocatable, 0);
}

}  // namespace
}  // namespace devmgr::view
