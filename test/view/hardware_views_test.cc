// SPDX-License-Identifier: Apache-2.0
//
// One card under several names, as devices show it.
#include "view/hardware_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "view/device_views.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kCardName[] = "example.com/card";
constexpr char kNetDriver[] = "net.example.com";
constexpr char kSlot[] = "0000:3b:00.0";
constexpr char kSlotText[] = "PCI address 0000:3b:00.0";

device::Hardware InSlot(const std::string& address, bool part = false) {
  device::Hardware hardware;
  hardware.Add(device::PciIdentity(address));
  hardware.part = part;
  return hardware;
}

class HardwareViewsTest : public MomentTest {
 protected:
  void Serve(const std::string& resource, const std::vector<std::string>& ids) {
    std::vector<device::Device> list;
    for (const std::string& id : ids) list.push_back(device::Healthy(id));
    const device::Inventory inventory = device::Live(std::move(list));
    moment_.resources.insert_or_assign(
        resource,
        {inventory.state(), 0, inventory.figures(), inventory.devices()});
  }
  /// A device of a driver; without an address its hardware is not known.
  void Publish(const std::string& driver, const std::string& name,
               const std::string& address, bool part = false) {
    auto slice = std::make_shared<ResourceSlice>();
    slice->driver = driver;
    slice->pool = "pool";
    slice->node_name = "n1";
    SliceDevice& device = slice->devices.emplace_back();
    device.name = name;
    if (!address.empty()) {
      device.attributes.emplace("resource.kubernetes.io/pciBusID",
                                SharedText(address));
    }
    if (part) device.attributes.emplace("parentUUID", SharedText("u"));
    objects_.resource_slices.insert_or_assign({"", driver + name}, slice);
    moment_.objects = std::make_shared<const ObjectSnapshot>(objects_);
  }
  void SetOptions(const HardwareOptions& options) {
    auto terms = std::make_shared<Terms>(*moment_.terms);
    terms->hardware = options;
    moment_.terms = terms;
  }
  DeviceInfo Find(const std::string& name) const {
    for (const DeviceInfo& info : DevicesOf(moment_)) {
      if (info.device == name) return info;
    }
    ADD_FAILURE() << name << " is not shown";
    return {};
  }

  ObjectSnapshot objects_;
};

TEST_F(HardwareViewsTest, ACardShowsItsOtherNames) {
  Serve(kCardName, {kSlot, "0000:3b:00.1"});
  Publish(kDriver, "gpu-0", kSlot);
  Publish(kNetDriver, "eth-0", kSlot);
  const DeviceInfo plugins = Find(kSlot);
  EXPECT_THAT(plugins.hardware, ElementsAre(kSlotText));
  EXPECT_THAT(plugins.same_hardware, ElementsAre("gpu.example.com/pool/gpu-0",
                                                 "net.example.com/pool/eth-0"));
  const DeviceInfo drivers = Find("gpu-0");
  EXPECT_THAT(drivers.hardware, ElementsAre(kSlotText));
  EXPECT_THAT(drivers.same_hardware,
              ElementsAre("example.com/card/0000:3b:00.0",
                          "net.example.com/pool/eth-0"));
  const DeviceInfo alone = Find("0000:3b:00.1");
  EXPECT_THAT(alone.hardware, SizeIs(1));
  EXPECT_THAT(alone.same_hardware, IsEmpty());
}

// A driver or plugin knows which of its own devices are one.
TEST_F(HardwareViewsTest, OtherDevicesOfOneOwnerAreNotNamed) {
  Publish(kDriver, "gpu-0", kSlot);
  Publish(kDriver, "gpu-0-again", kSlot);
  EXPECT_THAT(Find("gpu-0").hardware, ElementsAre(kSlotText));
  EXPECT_THAT(Find("gpu-0").same_hardware, IsEmpty());
}

TEST_F(HardwareViewsTest, PartsOfACardAreTheSameAsAllOfItOnly) {
  Publish(kDriver, "part-a", kSlot, /*part=*/true);
  Publish(kNetDriver, "part-b", kSlot, /*part=*/true);
  EXPECT_THAT(Find("part-a").same_hardware, IsEmpty());
  Serve(kCardName, {kSlot});
  EXPECT_THAT(Find("part-a").same_hardware,
              ElementsAre("example.com/card/0000:3b:00.0"));
  EXPECT_THAT(Find(kSlot).same_hardware, SizeIs(2));
}

// Their IDs say nothing: the nodes of the plugin's answer did.
TEST_F(HardwareViewsTest, WhatPodsHoldSaysWhichHardwareItIs) {
  Serve(kCardName, {"card-a", "card-b", "card-c"});
  Publish(kDriver, "gpu-0", kSlot);
  EXPECT_THAT(Find("card-a").hardware, IsEmpty());
  auto pod = MakePod("p", state::PodPhase::kAdmitted);
  state::DeviceHold one;
  one.container = "main";
  one.resource = kCardName;
  one.phase = device::ReservationPhase::kCommitted;
  one.devices = {{"card-a", {}}};
  one.hardware = InSlot(kSlot);
  state::DeviceHold two = one;
  two.container = "side";
  two.devices = {{"card-b", {}}, {"card-c", {}}};
  two.hardware = InSlot("0000:3b:00.1");
  pod->holds = {one, two};
  moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  EXPECT_THAT(Find("card-a").hardware, ElementsAre(kSlotText));
  EXPECT_THAT(Find("card-a").same_hardware,
              ElementsAre("gpu.example.com/pool/gpu-0"));
  // Of two devices in one answer it is not known which is which.
  EXPECT_THAT(Find("card-b").hardware, IsEmpty());
}

TEST_F(HardwareViewsTest, WhatClaimsHaveSaysWhichHardwareItIs) {
  Publish(kDriver, "gpu-0", "");
  Publish(kDriver, "gpu-1", "");
  Publish(kNetDriver, "eth-0", kSlot);
  auto claim = MakeClaim("c", Uid("p"));
  state::DriverRecord& part = claim->drivers[kDriver];
  part.phase = state::DriverPhase::kPrepared;
  part.boot_id = kBoot;
  part.allocated = {{"pool", "gpu-0", false, InSlot(kSlot)},
                    {"pool", "gpu-1", false, {}}};
  state::PreparedDevice& prepared = part.devices.emplace_back();
  prepared.pool = "pool";
  prepared.device = "gpu-1";
  prepared.hardware = InSlot("0000:3b:00.1");
  part.devices.push_back(prepared);
  part.devices.back().hardware = InSlot("0000:3b:00.2");
  auto pod = MakePod("p", state::PodPhase::kPreparing);
  pod->claims = {claim->uid};
  moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  EXPECT_THAT(Find("gpu-0").hardware, ElementsAre(kSlotText));
  EXPECT_THAT(Find("gpu-0").same_hardware,
              ElementsAre("net.example.com/pool/eth-0"));
  EXPECT_THAT(Find("gpu-1").hardware, ElementsAre("PCI address 0000:3b:00.1",
                                                  "PCI address 0000:3b:00.2"));
}

TEST_F(HardwareViewsTest, OfManyNamesTheFirstFewAreShown) {
  Publish(kDriver, "gpu-0", kSlot);
  for (int i = 0; i < 12; ++i) {
    Publish("d" + std::to_string(i) + ".example.com", "x", kSlot);
  }
  EXPECT_THAT(Find("gpu-0").same_hardware, SizeIs(8));
}

TEST_F(HardwareViewsTest, NothingIsShownWhereHardwareIsNotLookedAt) {
  Serve(kCardName, {kSlot});
  Publish(kDriver, "gpu-0", kSlot);
  HardwareOptions off;
  off.one_holder = false;
  SetOptions(off);
  EXPECT_THAT(Find(kSlot).hardware, IsEmpty());
  EXPECT_THAT(Find("gpu-0").same_hardware, IsEmpty());
  // A ledger that no manager has open says nothing of published devices.
  std::vector<DeviceInfo> devices(1);
  devices[0].resource = kCardName;
  devices[0].device = kSlot;
  moment_.terms = nullptr;
  AddHardware(moment_, &devices);
  EXPECT_THAT(devices[0].hardware, IsEmpty());
}

}  // namespace
}  // namespace devmgr::view
