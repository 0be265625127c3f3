// SPDX-License-Identifier: Apache-2.0
//
// Plans for devices of plugins, by what the ledger says of names, and of
// containers and hardware for which it has no pod.
#include "claim/device_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/foreign_holders.h"
#include "device/devices.h"
#include "support/builders.h"
#include "support/test_ledger.h"

namespace devmgr::claim {
namespace {

using device::Healthy;
using device::IdsOf;
using device::Shortage;
using device::Unhealthy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kCardResource[] = "example.com/card";

class PlanDevicesTest : public testing::Test {
 protected:
  void Serve(std::vector<device::Device> list) {
    inventories_.insert_or_assign(kCardResource, device::Live(std::move(list)));
  }
  static device::DeviceNeed Need(const std::string& container, int count) {
    return {.container = container, .resource = kCardResource, .count = count};
  }
  /// As containers of one runtime are reported.
  void Foreign(const std::string& id, const std::string& pod,
               const std::string& container,
               const std::set<std::string>& devices) {
    auto holder = std::make_shared<state::ForeignHolderRecord>();
    holder->id.value = id;
    holder->pod_uid.value = pod;
    holder->container = container;
    for (const std::string& device : devices) {
      holder->devices.emplace(kCardResource, device);
    }
    Take({state::PutHolder{holder}});
  }
  void Take(std::vector<state::Change> changes) {
    state::Decision decision;
    decision.changes = std::move(changes);
    ledger_.Take(decision);
  }
  /// A pod that has a claim for the cards' name.
  void PutClassHolder(const std::string& name) {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid.value = "u-claim-" + name;
    claim->name = NameOf("claim-" + name);
    claim->pods = {PodUid{"u-" + name}};
    claim->drivers[kDriver].phase = state::DriverPhase::kPreparing;
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid.value = "u-" + name;
    pod->name = NameOf(name);
    pod->phase = state::PodPhase::kPreparing;
    pod->claims = {claim->uid};
    pod->needs = {{"main", false, {{claim->uid, "r", kCardResource, ""}}}};
    Take({state::PutClaim{claim}, state::PutPod{pod}});
  }
  static std::shared_ptr<state::PodRecord> PodWith(const std::string& name,
                                                   const std::string& device) {
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid.value = "u-" + name;
    pod->name = NameOf(name);
    pod->phase = state::PodPhase::kAdmitted;
    state::DeviceHold hold;
    hold.container = "main";
    hold.resource = kCardResource;
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{.id = device}};
    pod->holds = {hold};
    return pod;
  }
  void GiveToClass(const std::string& by_operator) {
    auto record = std::make_shared<state::ResourceRecord>();
    record->name = kCardResource;
    record->backing = state::Backing::kClass;
    record->by_operator = by_operator;
    Take({state::PutResource{record}});
  }

  device::PodPlan Plan(const std::string& pod,
                       std::vector<device::DeviceNeed> needs,
                       Sharing sharing = Sharing::kOneOwner) {
    table_ = ReservationsOf(ledger_.state());
    // As the owner of inventories and reservations keeps them together.
    for (const char* id : {"0", "1", "2", "3"}) {
      inventories_.at(kCardResource)
          .UpdateHeld({id}, [&](const DeviceId& device) {
            return table_.HolderOf(kCardResource, device) != nullptr;
          });
    }
    return PlanDevices({ledger_.state(), inventories_, table_, sharing},
                       {PodUid{pod}, std::move(needs)});
  }
  std::int64_t Free(Sharing sharing = Sharing::kOneOwner) {
    table_ = ReservationsOf(ledger_.state());
    return FreeDevices({ledger_.state(), inventories_, table_, sharing},
                       kCardResource);
  }

  TestLedger ledger_;
  device::InventoryMap inventories_;
  device::ReservationTable table_;
};

TEST_F(PlanDevicesTest, NoPodGetsWhatAForeignContainerHolds) {
  Serve({Healthy("0"), Healthy("1"), Healthy("2")});
  Foreign("f", "u-stray", "main", {"0", "1"});
  const auto plan = Plan("u-P", {Need("main", 1)});
  ASSERT_THAT(plan.reservations, SizeIs(1));
  EXPECT_THAT(IdsOf(plan.reservations[0].devices), ElementsAre("2"));
  const auto short_one = Plan("u-P", {Need("main", 2)});
  ASSERT_THAT(short_one.shortages, SizeIs(1));
  EXPECT_EQ(short_one.shortages[0].kind, Shortage::Kind::kTooFewFree);
  EXPECT_THAT(short_one.shortages[0].holders, ElementsAre(ForeignUid({"f"})));
}

// A container that was created before the manager knew its pod goes on with
// what it has: the lowest free ID would be another device.
TEST_F(PlanDevicesTest, ThePodOfTheContainerGetsJustTheseDevices) {
  Serve({Healthy("0"), Healthy("1"), Healthy("2"), Healthy("3")});
  Foreign("f", "u-P", "main", {"2", "3"});
  const auto plan = Plan("u-P", {Need("main", 2)});
  ASSERT_TRUE(plan.Complete());
  ASSERT_THAT(plan.reservations, SizeIs(1));
  EXPECT_THAT(IdsOf(plan.reservations[0].devices), ElementsAre("2", "3"));
  // What it has beyond that is free for the pod, after its own.
  const auto more = Plan("u-P", {Need("main", 3)});
  ASSERT_THAT(more.reservations, SizeIs(1));
  EXPECT_THAT(IdsOf(more.reservations[0].devices), ElementsAre("0", "2", "3"));
}

TEST_F(PlanDevicesTest, EachContainerGetsWhatItHasItself) {
  Serve({Healthy("0"), Healthy("1")});
  Foreign("fa", "u-P", "a", {"1"});
  Foreign("fb", "u-P", "b", {"0"});
  const auto plan = Plan("u-P", {Need("a", 1), Need("b", 1)});
  ASSERT_THAT(plan.reservations, SizeIs(2));
  EXPECT_THAT(IdsOf(plan.reservations[0].devices), ElementsAre("1"));
  EXPECT_THAT(IdsOf(plan.reservations[1].devices), ElementsAre("0"));
}

TEST_F(PlanDevicesTest, WhatAContainerOfAnotherPodHoldsTooIsNotAdopted) {
  Serve({Healthy("0"), Healthy("1"), Healthy("2")});
  Foreign("f1", "u-P", "main", {"0", "1"});
  Foreign("f2", "u-stray", "main", {"0"});
  const auto plan = Plan("u-P", {Need("main", 2)});
  ASSERT_THAT(plan.reservations, SizeIs(1));
  EXPECT_THAT(IdsOf(plan.reservations[0].devices), ElementsAre("1", "2"));
  const auto short_one = Plan("u-P", {Need("main", 3)});
  ASSERT_THAT(short_one.shortages, SizeIs(1));
  EXPECT_THAT(short_one.shortages[0].holders, ElementsAre(ForeignUid({"f2"})));
}

// An operator freed them, though the container may still run.
TEST_F(PlanDevicesTest, WhatAnOperatorFreedIsLikeAnyFreeDevice) {
  Serve({Healthy("0"), Healthy("1")});
  Foreign("f", "u-P", "main", {"1"});
  ledger_.Take(*FreeHolder(ledger_.state(), "f", "it hangs"));
  const auto plan = Plan("u-P", {Need("main", 1)});
  ASSERT_THAT(plan.reservations, SizeIs(1));
  EXPECT_THAT(IdsOf(plan.reservations[0].devices), ElementsAre("0"));
  EXPECT_THAT(Plan("u-Q", {Need("main", 2)}).shortages, IsEmpty());
}

TEST_F(PlanDevicesTest, OneNameIsServedInOneWayAtATime) {
  Serve({Healthy("0"), Healthy("1")});
  PutClassHolder("Q");
  const auto refused = Plan("u-P", {Need("main", 1)});
  ASSERT_THAT(refused.shortages, SizeIs(1));
  EXPECT_EQ(refused.shortages[0].kind, Shortage::Kind::kHeldByClaims);
  EXPECT_THAT(refused.shortages[0].holders, ElementsAre(PodUid{"u-Q"}));
  // As with the kubelet: claims do not count.
  EXPECT_TRUE(Plan("u-P", {Need("main", 1)}, Sharing::kAsItComes).Complete());
  // The pod's own claims do not stand in its way.
  EXPECT_TRUE(Plan("u-Q", {Need("main", 1)}).Complete());
}

TEST_F(PlanDevicesTest, ANameThatAnOperatorGaveAwayIsNotServed) {
  Serve({Healthy("0")});
  GiveToClass("moving to DRA");
  for (const Sharing sharing : {Sharing::kOneOwner, Sharing::kAsItComes}) {
    const auto plan = Plan("u-P", {Need("main", 1)}, sharing);
    ASSERT_THAT(plan.shortages, SizeIs(1));
    EXPECT_EQ(plan.shortages[0].kind, Shortage::Kind::kHandedOver);
    EXPECT_EQ(plan.shortages[0].reason, "moving to DRA");
    EXPECT_EQ(Free(sharing), 0);
  }
}

TEST_F(PlanDevicesTest, FreeDevicesAreHealthyAndNotHeld) {
  EXPECT_EQ(Free(), 0);  // No plugin.
  Serve({Healthy("0"), Healthy("1"), Unhealthy("2")});
  EXPECT_EQ(Free(), 2);
  inventories_.at(kCardResource).UpdateHeld({"0"}, device::SomebodyHolds);
  EXPECT_EQ(Free(), 1);
  PutClassHolder("Q");
  EXPECT_EQ(Free(), 0);
  EXPECT_EQ(Free(Sharing::kAsItComes), 1);
  // Without a plugin the health of none is known.
  inventories_.at(kCardResource).Disconnect(1, device::NobodyHolds, 0);
  EXPECT_EQ(Free(Sharing::kAsItComes), 0);
}

TEST_F(PlanDevicesTest, ReservationsAreThoseOfPodsThenWhatForeignersHave) {
  Take({state::PutPod{PodWith("A", "0")}});
  Foreign("f1", "u-A", "main", {"0", "1"});
  Foreign("f2", "u-stray", "main", {"1", "2"});
  const auto table = ReservationsOf(
      ledger_.state(),
      {{PodUid{"u-B"}, {device::Held("u-B", "main", {"3"}, kCardResource)}}});
  const auto holder = [&](const std::string& id) -> std::string {
    const auto* held = table.HolderOf(kCardResource, {id});
    return held == nullptr ? "" : held->pod.value;
  };
  EXPECT_EQ(holder("0"), "u-A");
  EXPECT_EQ(holder("1"), ForeignUid({"f1"}).value);
  EXPECT_EQ(holder("2"), ForeignUid({"f2"}).value);
  EXPECT_EQ(holder("3"), "u-B");
  EXPECT_EQ(holder("4"), "");
}

// Two decisions on their way cannot both have a device of the ledger.
TEST_F(PlanDevicesTest, WhatIsIntendedDoesNotTakeWhatAPodHas) {
  Take({state::PutPod{PodWith("A", "0")}});
  const auto table = ReservationsOf(
      ledger_.state(),
      {{PodUid{"u-B"}, {device::Held("u-B", "main", {"0"}, kCardResource)}}});
  EXPECT_EQ(table.HolderOf(kCardResource, {"0"})->pod, PodUid{"u-A"});
}

TEST_F(PlanDevicesTest, EachDeviceThatIsHeldElsewhereIsFreedByItself) {
  device::ReservationTable table;
  ASSERT_TRUE(table.Add(ElsewhereReservation(kCardResource, {"0"})).ok());
  ASSERT_TRUE(table.Add(ElsewhereReservation(kCardResource, {"1"})).ok());
  ASSERT_TRUE(table.Add(ForeignReservation(kCardResource, {"2"}, {"f"})).ok());
  ASSERT_TRUE(table.Add(ForeignReservation(kCardResource, {"3"}, {"f"})).ok());
  EXPECT_THAT(table.ReleasePod(ElsewhereUid(kCardResource, {"0"})), SizeIs(1));
  EXPECT_EQ(table.HolderOf(kCardResource, {"0"}), nullptr);
  EXPECT_NE(table.HolderOf(kCardResource, {"1"}), nullptr);
  table.ReleaseContainer(ForeignUid({"f"}), "example.com/card 2");
  EXPECT_EQ(table.HolderOf(kCardResource, {"2"}), nullptr);
  EXPECT_NE(table.HolderOf(kCardResource, {"3"}), nullptr);
}

TEST_F(PlanDevicesTest, HardwareOfAPlanIsThatOfItsDevices) {
  const auto card = [](int number, bool part) {
    device::Hardware hardware;
    hardware.Add(device::PciIdentity("0000:3b:00." + std::to_string(number)));
    hardware.part = part;
    return hardware;
  };
  const PluginHardware known = {{{kCardResource, {"0"}}, card(0, false)},
                                {{kCardResource, {"1"}}, card(1, true)},
                                {{"example.com/other", {"2"}}, card(2, false)}};
  const auto all =
      HardwareOf(known, {device::Held("u-P", "a", {"0", "1"}, kCardResource),
                         device::Held("u-P", "b", {"2"}, kCardResource)});
  ASSERT_THAT(all, SizeIs(1));  // Nothing is known of what b gets.
  const device::Hardware& of_a = all.at({"a", kCardResource});
  EXPECT_THAT(of_a.identities,
              ElementsAre(*device::PciIdentity("0000:3b:00.0"),
                          *device::PciIdentity("0000:3b:00.1")));
  EXPECT_TRUE(of_a.part);
}

}  // namespace
}  // namespace devmgr::claim
