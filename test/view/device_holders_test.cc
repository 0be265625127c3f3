// SPDX-License-Identifier: Apache-2.0
#include "view/device_holders.h"

#include <devmgr/runtime_source.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using device::ReservationPhase;
using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kGpu[] = "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

class DeviceHoldersTest : public MomentTest {
 protected:
  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  static state::DeviceHold Hold(const std::string& container,
                                const std::vector<std::string>& ids) {
    state::DeviceHold hold;
    hold.container = container;
    hold.resource = "example.com/gpu";
    hold.phase = ReservationPhase::kCommitted;
    for (const std::string& id : ids) {
      hold.devices.push_back({DeviceId(id), {}});
    }
    return hold;
  }
  /// Prepared by kDriver, with these devices.
  void AddClaim(const std::string& name, const std::string& pod,
                std::vector<state::PreparedDevice> devices) {
    auto claim = MakeClaim(name, Uid(pod));
    claim->drivers[kDriver].phase = state::DriverPhase::kPrepared;
    claim->drivers[kDriver].devices = std::move(devices);
    moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  }
  /// The driver has published `gpu-0` of `pool` with these attributes.
  void Publish(const std::string& name, std::int64_t generation,
               SortedMap<DeviceAttribute> attributes) {
    auto slice = std::make_shared<ResourceSlice>();
    slice->metadata.name = name;
    slice->driver = kDriver;
    slice->pool = "pool";
    slice->pool_generation = generation;
    slice->devices.emplace_back().name = "gpu-0";
    slice->devices.back().attributes = std::move(attributes);
    objects_.resource_slices.insert_or_assign(slice->metadata.FullName(),
                                              slice);
    moment_.objects = std::make_shared<const ObjectSnapshot>(objects_);
  }
  /// The runtime has the container, of the pod of that name.
  void Run(const std::string& pod, std::vector<ContainerRun> containers) {
    PodRun run;
    run.name = {"default", pod};
    run.containers = std::move(containers);
    runs_.pods[Uid(pod)] = std::make_shared<const PodRun>(std::move(run));
  }
  static ContainerRun Running(const std::string& id, const std::string& name) {
    ContainerRun run;
    run.id = id;
    run.name = name;
    run.state = RuntimeContainer::State::kRunning;
    run.created_at = WallTime(std::chrono::seconds(5));
    return run;
  }
  std::vector<DeviceHolderInfo> Holders() const {
    return DeviceHoldersOf(moment_, &runs_);
  }

  ObjectSnapshot objects_;
  RuntimeSnapshot runs_;
};

TEST_F(DeviceHoldersTest, AContainerHasItsIdAndTheDevicesOfItsPlugins) {
  auto pod = MakePod("p", PodPhase::kReady);
  pod->holds = {Hold("main", {kGpu, "0000:3b:00.0"})};
  pod->holds[0].edits.cdi_devices = {"example.com/gpu=0000:3b:00.0",
                                     std::string("example.com/gpu=") + kGpu,
                                     "example.com/gpu=all"};
  Put(pod);
  Run("p", {Running("c-2", "main"), Running("c-1", "main"),
            Running("c-3", "other")});
  const auto holders = Holders();
  ASSERT_THAT(holders, SizeIs(1));
  const DeviceHolderInfo& holder = holders[0];
  EXPECT_EQ(holder.pod, (ObjectName{"default", "p"}));
  EXPECT_EQ(holder.pod_uid, Uid("p"));
  EXPECT_EQ(holder.container, "main");
  EXPECT_EQ(holder.container_id, "c-2") << "the newest is first";
  EXPECT_EQ(holder.state, "running");
  EXPECT_EQ(holder.created_at, WallTime(std::chrono::seconds(5)));
  ASSERT_THAT(holder.devices, SizeIs(2));
  EXPECT_EQ(holder.devices[0].resource, "example.com/gpu");
  EXPECT_EQ(holder.devices[0].device, kGpu);
  EXPECT_EQ(holder.devices[0].uuid, kGpu);
  EXPECT_EQ(holder.devices[0].pci_address, "");
  EXPECT_THAT(holder.devices[0].cdi_devices,
              ElementsAre(std::string("example.com/gpu=") + kGpu));
  EXPECT_EQ(holder.devices[1].pci_address, "0000:3b:00.0");
  EXPECT_EQ(holder.devices[1].uuid, "");
  // The plugin does not say whose it is.
  EXPECT_THAT(holder.cdi_devices, ElementsAre("example.com/gpu=all"));
}

TEST_F(DeviceHoldersTest, WhatAPluginAnsweredForOneDeviceIsIts) {
  auto pod = MakePod("p", PodPhase::kReady);
  pod->holds = {Hold("main", {"7"})};
  pod->holds[0].edits.cdi_devices = {"example.com/gpu=all"};
  pod->holds[0].hardware.Add(device::PciIdentity("0000:3b:00.0"));
  Put(pod);
  const auto holders = Holders();
  ASSERT_THAT(holders, SizeIs(1));
  EXPECT_EQ(holders[0].container_id, "") << "the runtime does not have it";
  EXPECT_FALSE(holders[0].created_at.has_value());
  EXPECT_THAT(holders[0].devices[0].cdi_devices,
              ElementsAre("example.com/gpu=all"));
  EXPECT_EQ(holders[0].devices[0].pci_address, "0000:3b:00.0");
  EXPECT_THAT(holders[0].cdi_devices, IsEmpty());
}

TEST_F(DeviceHoldersTest, DevicesOfClaimsHaveWhatTheirDriversPublished) {
  AddClaim("c", "p",
           {{{"r1"}, "pool", "gpu-0", {"example.com/gpu=0"}, "", {}},
            {{"r2"}, "pool", "gpu-1", {}, "", {}}});
  auto pod = MakePod("p", PodPhase::kReady);
  const ClaimUid claim{"uid-c"};
  pod->needs = {{"init", true, {{claim, "r2", {}, "pc"}}},
                {"main", false, {{claim, "r1", "example.com/gpu", {}}}},
                {"none", false, {}}};
  Put(pod);
  Publish("old", 1, {{"uuid", SharedText("GPU-old")}});
  Publish("new", 2,
          {{"resource.kubernetes.io/pciBusID", SharedText("3B:00.0")},
           {"gpu.example.com/uuid", SharedText(kGpu)}});
  const auto holders = Holders();
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[0].container, "init");
  EXPECT_THAT(holders[0].devices, SizeIs(1));
  EXPECT_EQ(holders[0].devices[0].device, "gpu-1");
  EXPECT_EQ(holders[0].devices[0].resource, "");
  const ContainerDevice& device = holders[1].devices.at(0);
  EXPECT_EQ(device.claim, (ObjectName{"default", "c"}));
  EXPECT_EQ(device.resource, "example.com/gpu");
  EXPECT_EQ(device.driver, kDriver);
  EXPECT_EQ(device.pool, "pool");
  EXPECT_EQ(device.device, "gpu-0");
  EXPECT_THAT(device.cdi_devices, ElementsAre("example.com/gpu=0"));
  EXPECT_EQ(device.uuid, kGpu) << "as it is spelled";
  EXPECT_EQ(device.pci_address, "0000:3b:00.0");
}

TEST_F(DeviceHoldersTest, OnlyWhatPodsHoldCounts) {
  for (const PodPhase phase :
       {PodPhase::kWaiting, PodPhase::kAllocating, PodPhase::kRejected}) {
    auto pod = MakePod(std::string(PodPhaseName(phase)), phase);
    pod->holds = {Hold("main", {"1"})};
    Put(pod);
  }
  auto released = MakePod("released", PodPhase::kReady);
  released->holds = {Hold("init", {"2"})};
  released->holds[0].phase = ReservationPhase::kReleased;
  Put(released);
  EXPECT_THAT(Holders(), IsEmpty());
  // A container may run on while its pod is released.
  auto releasing = MakePod("releasing", PodPhase::kReleasing);
  releasing->holds = {Hold("main", {"3"})};
  Put(releasing);
  EXPECT_THAT(Holders(), SizeIs(1));
}

TEST_F(DeviceHoldersTest, PodsComeByName) {
  for (const char* name : {"b", "a", "c"}) {
    auto pod = MakePod(name, PodPhase::kReady);
    pod->holds = {Hold("main", {name})};
    Put(pod);
  }
  std::vector<std::string> names;
  for (const auto& holder : DeviceHoldersOf(moment_, nullptr)) {
    names.push_back(holder.pod.name);
  }
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace devmgr::view
