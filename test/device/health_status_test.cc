// SPDX-License-Identifier: Apache-2.0
#include "device/health_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/devices.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Looks devices up in these, which must outlive it.
FindKnown In(const InventoryMap& inventories) {
  return [&inventories](const std::string& resource, const std::string& id) {
    const auto inventory = inventories.find(resource);
    return inventory != inventories.end() ? inventory->second.Find(id)
                                          : nullptr;
  };
}

TEST(HealthStatusTest, TellsTheHealthOfEachDevice) {  // DP-115
  InventoryMap inventories;
  inventories.emplace(kResource, Live({Healthy("dev1"), Unhealthy("dev2")}));
  const ReservationTable table = TableOf({Held("P", "app", {"dev1", "dev2"})});
  const auto status = HealthStatusOf(table.OfPod({"P"}), In(inventories));
  ASSERT_THAT(status, SizeIs(1));
  EXPECT_EQ(status[0].container, "app");
  ASSERT_THAT(status[0].resources, SizeIs(1));
  EXPECT_EQ(status[0].resources[0].resource, kResource);
  EXPECT_THAT(status[0].resources[0].devices,
              ElementsAre(DeviceHealthStatus{"dev1", Health::kHealthy,
                                             "reported by the plugin", 0},
                          DeviceHealthStatus{"dev2", Health::kUnhealthy,
                                             "reported by the plugin", 0}));
}

TEST(HealthStatusTest, WhatNobodyTellsOfIsUnknown) {  // W-16
  InventoryMap inventories;
  inventories.emplace("gone", Live({Healthy("a")}))
      .first->second.Disconnect(1, NobodyHolds, 77);
  inventories["other"].Restore(0, 0);
  const ReservationTable table = TableOf({Held("P", "app", {"a"}, "never"),
                                          Held("P", "app", {"a"}, "gone"),
                                          Held("P", "app", {"b"}, "other")});
  const auto status = HealthStatusOf(table.OfPod({"P"}), In(inventories));
  ASSERT_THAT(status, SizeIs(1));
  ASSERT_THAT(status[0].resources, SizeIs(3));
  EXPECT_EQ(
      status[0].resources[0].devices[0],
      (DeviceHealthStatus{"a", Health::kUnknown, "the plugin is gone", 77}));
  EXPECT_EQ(status[0].resources[1].devices[0],
            (DeviceHealthStatus{"a", Health::kUnknown, "", 0}));
  EXPECT_EQ(status[0].resources[2].devices[0],
            (DeviceHealthStatus{"b", Health::kUnknown, "", 0}));
}

TEST(HealthStatusTest, CoversContainersOfAllKinds) {  // W-17
  Reservation init = Held("P", "init", {"a"});
  init.kind = ContainerKind::kInit;
  Reservation sidecar = Held("P", "sidecar", {"b"});
  sidecar.kind = ContainerKind::kSidecar;
  const ReservationTable table =
      TableOf({init, sidecar, Held("P", "app", {"c"}),
               Held("P", "sidecar", {"n"}, "nic"), Held("Q", "app", {"d"})});
  const InventoryMap none;
  const auto status = HealthStatusOf(table.OfPod({"P"}), In(none));
  ASSERT_THAT(status, SizeIs(3));
  EXPECT_EQ(status[0].kind, ContainerKind::kInit);
  EXPECT_EQ(status[1].kind, ContainerKind::kSidecar);
  EXPECT_THAT(status[1].resources, SizeIs(2));
  EXPECT_EQ(status[2].container, "app");
  EXPECT_THAT(HealthStatusOf(table.OfPod({"R"}), In(none)), IsEmpty());
}

TEST(HealthStatusTest, ReplacesItsOwnEntriesOnly) {  // DP-116
  const ResourceHealthStatus before{kResource, {{.id = "x"}}};
  const ResourceHealthStatus others{"others", {{.id = "y"}}};
  const ResourceHealthStatus now{kResource, {{.id = "dev1"}}};
  const ResourceHealthStatus fresh{"fresh", {{.id = "z"}}};
  EXPECT_THAT(WithStatus({before, others}, {now, fresh}),
              ElementsAre(now, others, fresh));
}

TEST(HealthStatusTest, IdenticalListsConcernNobody) {  // DP-117
  std::vector<Reservation> held;
  std::vector<Device> list;
  for (int i = 0; i < 200; ++i) {
    const std::string id = "dev" + std::to_string(i);
    list.push_back(Healthy(id));
    held.push_back(Held("pod" + std::to_string(i), "app", {id}));
  }
  const ReservationTable table = TableOf(held);
  Inventory inventory = Live(list);
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(PodsConcerned(inventory.Report(1, list, SomebodyHolds, i),
                              table.Held(kResource)),
                IsEmpty());
  }
}

TEST(HealthStatusTest, AChangeConcernsTheHolder) {  // DP-118, W-16
  const ReservationTable table =
      TableOf({Held("P", "app", {"a"}), Held("Q", "app", {"b"}),
               Held("R", "app", {"a"}, "other resource")});
  const auto& held = table.Held(kResource);
  Inventory inventory;
  inventory.Connect(1, 0);
  const auto report = [&](std::vector<Device> list) {
    return PodsConcerned(inventory.Report(1, std::move(list), SomebodyHolds, 0),
                         held);
  };
  EXPECT_THAT(report({Healthy("a"), Healthy("b"), Healthy("c")}),
              ElementsAre(PodUid{"P"}, PodUid{"Q"}))
      << "Unknown before";
  EXPECT_THAT(report({Unhealthy("a"), Healthy("b"), Unhealthy("c")}),
              ElementsAre(PodUid{"P"}));
  EXPECT_THAT(report({Unhealthy("a"), Healthy("c")}), ElementsAre(PodUid{"Q"}));
  EXPECT_THAT(PodsConcerned(inventory.Disconnect(1, SomebodyHolds, 0), held),
              ElementsAre(PodUid{"P"}));
}

}  // namespace
}  // namespace devmgr::device
