// SPDX-License-Identifier: Apache-2.0
#include "device/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "support/random_lives.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Change = InventoryDelta::HealthChange;

class InventoryTest : public testing::Test {
 protected:
  InventoryDelta Report(std::vector<Device> list, Generation instance = 1) {
    return inventory_.Report(instance, std::move(list), NobodyHolds, ++now_ms_);
  }
  InventoryDelta Disconnect(Generation instance = 1) {
    return inventory_.Disconnect(instance, NobodyHolds, ++now_ms_);
  }
  void Connect(Generation instance = 1) {
    inventory_.Connect(instance, ++now_ms_);
  }
  /// Capacity and allocatable.
  std::pair<int, int> FiguresNow() const {
    return {inventory_.figures().capacity, inventory_.figures().allocatable};
  }
  std::vector<DeviceId> Ids() const {
    std::vector<DeviceId> ids;
    for (const InventoryDevice& known : inventory_.devices()) {
      ids.push_back(known.device.id);
    }
    return ids;
  }

  Inventory inventory_{{0, 1}};
  std::int64_t now_ms_ = 100;
};

using Numbers = std::pair<int, int>;

TEST_F(InventoryTest, CountsWhatExistsAndWhatWorks) {
  // DP-042, DP-043, DP-044, DP-045
  Connect();
  Report({Healthy("D1"), Healthy("D2"), Unhealthy("D3")});
  EXPECT_EQ(FiguresNow(), Numbers(3, 2));
  Report({Healthy("D1"), Healthy("D2")});
  EXPECT_EQ(FiguresNow(), Numbers(2, 2));
  Report({Healthy("D1"), Unhealthy("D2"), Unhealthy("D3")});
  EXPECT_EQ(FiguresNow(), Numbers(3, 1));
  Report({Unhealthy("D2"), Unhealthy("D3")});
  EXPECT_EQ(FiguresNow(), Numbers(2, 0));
}

TEST_F(InventoryTest, FollowsHealthBackAndForth) {  // DP-046
  Connect();
  const auto report = [&](Health d2, Health d3) {
    Report({Healthy("D1"), {"D2", d2, {}}, {"D3", d3, {}}, Healthy("D4")});
    EXPECT_EQ(inventory_.figures().capacity, 4);
    return inventory_.figures().allocatable;
  };
  const Health good = Health::kHealthy;
  const Health bad = Health::kUnhealthy;
  EXPECT_EQ(report(good, good), 4);
  EXPECT_EQ(report(bad, good), 3);
  EXPECT_EQ(report(good, good), 4);
  EXPECT_EQ(report(bad, bad), 2);
  EXPECT_EQ(report(bad, good), 3);
  EXPECT_EQ(report(good, good), 4);
}

TEST_F(InventoryTest, TellsWhatAListChanges) {
  Connect();
  EXPECT_THAT(Report({Healthy("b"), Healthy("a")}).added,
              ElementsAre("a", "b"));
  const InventoryDelta delta =
      Report({Unhealthy("b"), Healthy("c", {1}), Healthy("d")});
  EXPECT_THAT(delta.added, ElementsAre("c", "d"));
  EXPECT_THAT(delta.vanished, ElementsAre("a"));
  EXPECT_THAT(delta.changed,
              ElementsAre(Change{"b", Health::kHealthy, Health::kUnhealthy}));
  EXPECT_THAT(delta.moved, IsEmpty());
  EXPECT_THAT(Report({Unhealthy("b"), Healthy("c", {0}), Healthy("d")}).moved,
              ElementsAre("c"));
  EXPECT_THAT(Ids(), ElementsAre("b", "c", "d"));
}

TEST_F(InventoryTest, AnIdenticalListChangesNothing) {
  const std::vector<Device> list = {Healthy("b", {0}), Unhealthy("a")};
  Connect();
  Report(list);
  const auto before = inventory_.devices();
  EXPECT_TRUE(Report(list).Empty());
  EXPECT_TRUE(Report({list[1], list[0]}).Empty());
  EXPECT_EQ(inventory_.devices(), before);
}

TEST_F(InventoryTest, KnowsReasonAndTimeOfHealth) {
  Connect();
  Report({Healthy("a"), Healthy("b")});  // At 102.
  Report({Healthy("a"), Unhealthy("b")});
  EXPECT_EQ(inventory_.Find("a")->since_ms, 102);
  EXPECT_EQ(inventory_.Find("b")->since_ms, 103);
  EXPECT_EQ(inventory_.Find("b")->reason, HealthReason::kReported);
  Disconnect();
  EXPECT_EQ(inventory_.Find("b")->since_ms, 104);
  EXPECT_EQ(inventory_.Find("b")->reason, HealthReason::kPluginGone);
  EXPECT_EQ(inventory_.Find("c"), nullptr);
}

TEST_F(InventoryTest, ProblemsOfAListAreToldEachTime) {
  Connect();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Report({Healthy("a", {0, 5}), Healthy("b")}).problems.count, 1u);
    EXPECT_EQ(Report({Healthy("a"), Healthy("a")}).problems.count, 1u);
  }
  EXPECT_THAT(Ids(), ElementsAre("a"));
}

// W-16, DP-049, DP-054
TEST_F(InventoryTest, WithoutPluginCapacityStaysAndHealthIsUnknown) {
  Connect();
  Report({Healthy("a"), Unhealthy("b"), Healthy("c")});
  const InventoryDelta delta = Disconnect();
  EXPECT_THAT(delta.changed,
              ElementsAre(Change{"a", Health::kHealthy, Health::kUnknown},
                          Change{"b", Health::kUnhealthy, Health::kUnknown},
                          Change{"c", Health::kHealthy, Health::kUnknown}));
  EXPECT_EQ(inventory_.state(), EndpointState::kStopped);
  EXPECT_EQ(inventory_.primary(), std::nullopt);
  EXPECT_EQ(FiguresNow(), Numbers(3, 0));
}

TEST_F(InventoryTest, TheSameListMakesAllWellAgain) {
  Connect();
  Report({Healthy("a"), Healthy("b")});
  Disconnect();
  Connect(2);
  EXPECT_EQ(FiguresNow(), Numbers(2, 0));
  EXPECT_THAT(Report({Healthy("a"), Healthy("b")}, 2).changed,
              ElementsAre(Change{"a", Health::kUnknown, Health::kHealthy},
                          Change{"b", Health::kUnknown, Health::kHealthy}));
  EXPECT_EQ(FiguresNow(), Numbers(2, 2));
}

TEST_F(InventoryTest, AfterTheGracePeriodNothingIsLeft) {  // DP-051, DP-054
  Connect();
  Report({Healthy("a"), Unhealthy("b")});
  Disconnect();
  EXPECT_TRUE(inventory_.EndGrace(inventory_.stops(), NobodyHolds, ++now_ms_));
  EXPECT_EQ(inventory_.state(), EndpointState::kForgotten);
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_FALSE(inventory_.EndGrace(inventory_.stops(), NobodyHolds, now_ms_))
      << "told once";
}

TEST_F(InventoryTest, ALateEndOfGraceDoesNothing) {
  Connect();
  Report({Healthy("a")});
  Disconnect();
  const std::uint64_t first_stop = inventory_.stops();
  Connect(2);
  EXPECT_FALSE(inventory_.EndGrace(first_stop, NobodyHolds, ++now_ms_));
  Disconnect(2);
  EXPECT_FALSE(inventory_.EndGrace(first_stop, NobodyHolds, ++now_ms_));
  EXPECT_EQ(inventory_.state(), EndpointState::kStopped);
  EXPECT_TRUE(inventory_.EndGrace(inventory_.stops(), NobodyHolds, ++now_ms_));
}

TEST_F(InventoryTest, ARestoredResourceIsKnownAndHasNothing) {  // DP-052
  inventory_.Restore(0, 1);
  EXPECT_EQ(inventory_.state(), EndpointState::kRestored);
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
}

TEST_F(InventoryTest, ARestoredResourceMayShowItsLastCapacity) {  // W-20
  inventory_.Restore(3, 1);
  EXPECT_EQ(FiguresNow(), Numbers(3, 0));
  Connect();
  EXPECT_EQ(FiguresNow(), Numbers(3, 0));
  Report({Healthy("a")});
  EXPECT_EQ(FiguresNow(), Numbers(1, 1));
  inventory_.Restore(7, ++now_ms_);
  EXPECT_EQ(FiguresNow(), Numbers(1, 1)) << "too late";
}

TEST_F(InventoryTest, ARestoredResourceIsForgottenWhenNobodyComes) {
  inventory_.Restore(3, 1);
  EXPECT_TRUE(inventory_.EndGrace(inventory_.stops(), NobodyHolds, 2));
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
}

TEST_F(InventoryTest, APluginThatNeverReportsStaysListedWithNothing) {
  Connect();  // DP-053
  Disconnect();
  EXPECT_EQ(inventory_.state(), EndpointState::kStopped);
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
}

TEST_F(InventoryTest, AnEmptyListIsLegal) {
  Connect();
  Report({});
  EXPECT_EQ(inventory_.state(), EndpointState::kLive);
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
}

// Held devices the plugin does not list any more.

TEST_F(InventoryTest, AHeldDeviceThatVanishesIsUnknown) {  // W-16
  Connect();
  Report({Healthy("a", {1}), Healthy("b")});
  const InventoryDelta delta =
      inventory_.Report(1, {Healthy("b")}, SomebodyHolds, 500);
  EXPECT_THAT(delta.vanished, ElementsAre("a"));
  EXPECT_EQ(inventory_.HealthOf("a"), Health::kUnknown);
  EXPECT_EQ(inventory_.Find("a")->reason, HealthReason::kNotListed);
  EXPECT_EQ(inventory_.Find("a")->since_ms, 500);
  EXPECT_THAT(inventory_.Find("a")->device.numa_nodes, ElementsAre(1));
  EXPECT_EQ(FiguresNow(), Numbers(1, 1));
  EXPECT_TRUE(inventory_.Report(1, {Healthy("b")}, SomebodyHolds, 501).Empty());
  EXPECT_EQ(inventory_.Find("a")->since_ms, 500);
}

TEST_F(InventoryTest, AHeldDeviceThatComesBackHasChangedItsHealth) {
  Connect();
  Report({Healthy("a"), Healthy("b")});
  inventory_.Report(1, {Healthy("b")}, SomebodyHolds, 500);
  const InventoryDelta delta = Report({Healthy("a"), Healthy("b")});
  EXPECT_THAT(delta.added, IsEmpty());
  EXPECT_THAT(delta.changed,
              ElementsAre(Change{"a", Health::kUnknown, Health::kHealthy}));
  EXPECT_EQ(FiguresNow(), Numbers(2, 2));
}

TEST_F(InventoryTest, AVanishedDeviceIsDroppedOnceItIsFree) {
  Connect();
  Report({Healthy("a"), Healthy("b"), Healthy("c")});
  inventory_.Report(1, {Healthy("b")}, SomebodyHolds, 500);
  const auto c_is_held = [](const std::string& id) { return id == "c"; };
  inventory_.UpdateHeld({"b"}, c_is_held);
  EXPECT_THAT(Ids(), ElementsAre("a", "b", "c"));
  inventory_.UpdateHeld({"a", "c", "never seen"}, c_is_held);
  EXPECT_THAT(Ids(), ElementsAre("b", "c"));
  Report({Healthy("b")});
  EXPECT_THAT(Ids(), ElementsAre("b"));
}

TEST_F(InventoryTest, AHeldDeviceOutlivesTheGracePeriod) {
  Connect();
  Report({Healthy("a"), Healthy("b")});
  Disconnect();
  inventory_.EndGrace(
      inventory_.stops(), [](const std::string& id) { return id == "b"; }, 600);
  EXPECT_THAT(Ids(), ElementsAre("b"));
  EXPECT_EQ(inventory_.HealthOf("b"), Health::kUnknown);
  EXPECT_EQ(FiguresNow(), Numbers(0, 0));
}

// Which devices are free is known without a look at all of them; it must be as
// if they had been looked at.
TEST_F(InventoryTest, WhatIsFreeFollowsListsAndPods) {
  LiveEach({20'261'125, 1}, [&](Luck& luck) {
    inventory_ = Inventory({0, 1});
    std::set<std::string> held;
    const auto is_held = [&](const std::string& id) {
      return held.contains(id);
    };
    Connect();
    const auto report = [&] {
      std::vector<Device> list;
      for (int i = 0; i < 200; ++i) {
        if (luck.Chance(25)) continue;
        list.push_back(Healthy(std::to_string(i)));
        if (luck.Chance(25)) list.back().health = Health::kUnhealthy;
      }
      if (luck.Chance(50)) std::shuffle(list.begin(), list.end(), luck);
      inventory_.Report(1, std::move(list), is_held, ++now_ms_);
    };
    const auto reconnect = [&] {
      inventory_.Disconnect(1, is_held, ++now_ms_);
      inventory_.EndGrace(inventory_.stops(), is_held, now_ms_);
      Connect();
    };
    const auto take_or_free = [&] {
      const std::string id = std::to_string(luck.Below(200));
      if (held.erase(id) == 0) held.insert(id);
      inventory_.UpdateHeld({id}, is_held);
      return id;
    };
    const auto check = [&] {
      std::vector<DeviceId> free;
      std::int64_t held_unhealthy = 0;
      for (const InventoryDevice& known : inventory_.devices()) {
        const std::string& name = known.device.id;
        ASSERT_TRUE(known.listed || held.contains(name)) << name;
        ASSERT_EQ(inventory_.HasHolder(name), held.contains(name)) << name;
        if (known.Usable() && !held.contains(name)) free.push_back(name);
        if (held.contains(name) && known.device.health == Health::kUnhealthy) {
          ++held_unhealthy;
        }
      }
      std::vector<DeviceId> visited;
      inventory_.VisitFree([&](std::size_t place) {
        visited.push_back(inventory_.devices()[place].device.id);
        return visited.size() < 100;
      });
      ASSERT_EQ(inventory_.free_count(),
                static_cast<std::int64_t>(free.size()));
      ASSERT_EQ(inventory_.held_unhealthy_count(), held_unhealthy);
      free.resize(std::min<std::size_t>(free.size(), 100));
      ASSERT_EQ(visited, free);
    };
    TakeSteps(2'000, luck,
              {{"report", 4, report},
               {"reconnect", 1, reconnect},
               {"take or free", 75, take_or_free}},
              check);
  });
}

// Several instances.

TEST_F(InventoryTest, TheNewestThatReportedCounts) {  // DP-008 to DP-010
  Connect(1);
  Report({Healthy("a"), Healthy("b")}, 1);
  Connect(2);
  EXPECT_EQ(inventory_.primary(), 1u);
  EXPECT_EQ(FiguresNow(), Numbers(2, 2));
  EXPECT_TRUE(Report({Healthy("a"), Healthy("b")}, 2).Empty());
  EXPECT_EQ(inventory_.primary(), 2u);
  EXPECT_EQ(FiguresNow(), Numbers(2, 2));
  Connect(3);
  Report({Healthy("c")}, 3);
  EXPECT_EQ(inventory_.primary(), 3u);
  EXPECT_EQ(FiguresNow(), Numbers(1, 1));
}

TEST_F(InventoryTest, AnOlderInstanceIsOnStandby) {  // W-04
  Connect(1);
  Connect(2);
  Report({Healthy("new")}, 2);
  EXPECT_TRUE(Report({Healthy("old")}, 1).Empty());
  EXPECT_THAT(Ids(), ElementsAre("new"));
  const InventoryDelta delta = Disconnect(2);
  EXPECT_THAT(delta.added, ElementsAre("old"));
  EXPECT_THAT(delta.vanished, ElementsAre("new"));
  EXPECT_EQ(inventory_.primary(), 1u);
}

TEST_F(InventoryTest, ReplacedInstanceTakesOverWithItsLastList) {
  Connect(1);
  Report({Healthy("a"), Unhealthy("b")}, 1);
  Connect(2);
  Report({Healthy("c")}, 2);
  Disconnect(2);
  EXPECT_EQ(inventory_.primary(), 1u);
  EXPECT_THAT(Ids(), ElementsAre("a", "b"));
  EXPECT_EQ(FiguresNow(), Numbers(2, 1));
}

TEST_F(InventoryTest, TheEndOfTheOldInstanceHarmsNothing) {  // DP-014
  Connect(1);
  Report({Healthy("a")}, 1);
  Connect(2);
  Report({Healthy("a")}, 2);
  EXPECT_TRUE(Disconnect(1).Empty());
  EXPECT_EQ(inventory_.primary(), 2u);
  EXPECT_EQ(inventory_.HealthOf("a"), Health::kHealthy);
  EXPECT_EQ(inventory_.state(), EndpointState::kLive);
}

TEST_F(InventoryTest, AnInstanceThatHasNotReportedCannotTakeOver) {
  Connect(1);
  Report({Healthy("a")}, 1);
  Connect(2);
  Disconnect(1);
  EXPECT_EQ(inventory_.state(), EndpointState::kConnected);
  EXPECT_EQ(inventory_.HealthOf("a"), Health::kUnknown);
  EXPECT_EQ(FiguresNow(), Numbers(1, 0));
  Report({Healthy("a")}, 2);
  EXPECT_EQ(FiguresNow(), Numbers(1, 1));
}

TEST_F(InventoryTest, TheLastInstanceTakesAllHealthWithIt) {  // DP-015
  Connect(1);
  Report({Healthy("a"), Healthy("b")}, 1);
  Disconnect(1);
  EXPECT_EQ(inventory_.instances(), 0u);
  EXPECT_EQ(inventory_.state_since_ms(), now_ms_);
  EXPECT_EQ(FiguresNow(), Numbers(2, 0));
}

TEST_F(InventoryTest, AnUnknownInstanceChangesNothing) {
  // DP-016; DP-056 cannot come up: who is not connected has no devices.
  Connect(1);
  Report({Healthy("a")}, 1);
  EXPECT_TRUE(Disconnect(7).Empty());
  EXPECT_TRUE(Report({Healthy("x")}, 7).Empty());
  EXPECT_EQ(inventory_.state(), EndpointState::kLive);
  EXPECT_THAT(Ids(), ElementsAre("a"));
}

TEST_F(InventoryTest, TakesSixtyThousandDevicesAndFlipsOfOne) {
  std::vector<Device> list;
  for (int i = 0; i < 60'000; ++i) {
    // As a map of the plugin's would have them.
    list.push_back(Healthy("dev-" + std::to_string(i * 7'919 % 60'000), {0}));
  }
  Connect();
  Report(list);
  EXPECT_EQ(FiguresNow(), Numbers(60'000, 60'000));
  list[1234].health = Health::kUnhealthy;
  EXPECT_THAT(
      Report(list).changed,
      ElementsAre(Change{list[1234].id, Health::kHealthy, Health::kUnhealthy}));
  EXPECT_EQ(FiguresNow(), Numbers(60'000, 59'999));
  EXPECT_EQ(Ids()[59'999], "dev-59999");
}

}  // namespace
}  // namespace devmgr::device
