// SPDX-License-Identifier: Apache-2.0
#include "device/health_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/devices.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kFor = 30'000;

TEST(FaultyDevicesTest, AreHeldAndCalledUnhealthy) {
  Inventory inventory = Live({Healthy("a"), Unhealthy("b"), Unhealthy("c")});
  const ReservationTable table = TableOf({Held("P", "app", {"a", "b", "x"})});
  EXPECT_THAT(FaultyDevices(inventory, table.Held(kResource)),
              ElementsAre(FaultyDevice{{"P"}, "b", 0}));
  // Nobody knows, which is not Unhealthy.
  inventory.Disconnect(1, SomebodyHolds, 5);
  EXPECT_THAT(FaultyDevices(inventory, table.Held(kResource)), IsEmpty());
}

// AL-192
TEST(HealthGuardTest, APodIsFailedOnceItsDeviceHasNotWorkedForLong) {
  HealthGuard guard(kFor);
  const std::vector<FaultyDevice> faulty = {{{"P"}, "a", 1'000}};
  HealthGuard::Ruling ruling = guard.Judge(faulty, 4, 1'000);
  EXPECT_EQ(ruling.fail, std::nullopt);
  EXPECT_EQ(ruling.next_ms, 31'000);
  // Well again for a moment: it begins anew.
  ruling = guard.Judge({}, 4, 21'000);
  EXPECT_EQ(ruling.fail, std::nullopt);
  EXPECT_EQ(ruling.next_ms, std::nullopt);
  const std::vector<FaultyDevice> again = {{{"P"}, "a", 22'000}};
  EXPECT_EQ(guard.Judge(again, 4, 51'999).fail, std::nullopt);
  ruling = guard.Judge(again, 4, 52'000);
  EXPECT_EQ(ruling.fail, again[0]);
  EXPECT_EQ(ruling.next_ms, std::nullopt);
  EXPECT_EQ(guard.Judge(again, 4, 99'000).fail, std::nullopt) << "once";
  guard.Judge({}, 4, 100'000);
  const std::vector<FaultyDevice> third = {{{"P"}, "a", 101'000}};
  EXPECT_EQ(guard.Judge(third, 4, 131'000).fail, third[0]);
}

TEST(HealthGuardTest, OneInTenSecondsTheLongestFirst) {
  HealthGuard guard(kFor);
  const std::vector<FaultyDevice> faulty = {{{"P"}, "a", 500}, {{"Q"}, "b", 0}};
  HealthGuard::Ruling ruling = guard.Judge(faulty, 4, 40'000);
  EXPECT_EQ(ruling.fail, faulty[1]);
  EXPECT_EQ(ruling.next_ms, 50'000);
  EXPECT_EQ(guard.Judge(faulty, 4, 49'999).fail, std::nullopt);
  EXPECT_EQ(guard.Judge(faulty, 4, 50'000).fail, faulty[0]);
}

TEST(HealthGuardTest, TwoDevicesOfAPodFailItOnce) {
  HealthGuard guard(kFor);
  const std::vector<FaultyDevice> faulty = {{{"P"}, "a", 0}, {{"P"}, "b", 0}};
  const HealthGuard::Ruling ruling = guard.Judge(faulty, 9, 40'000);
  EXPECT_EQ(ruling.fail, faulty[0]);
  EXPECT_EQ(ruling.next_ms, std::nullopt);
}

// AL-193
TEST(HealthGuardTest, APluginThatCallsMostBrokenIsNotBelievedForAMinute) {
  HealthGuard guard(kFor);
  std::vector<FaultyDevice> faulty;
  for (int i = 0; i < 10; ++i) {
    faulty.push_back({{"P" + std::to_string(i)}, std::to_string(i), 0});
  }
  HealthGuard::Ruling ruling = guard.Judge(faulty, 10, 0);
  EXPECT_TRUE(ruling.holds_back);
  EXPECT_EQ(ruling.next_ms, 60'000);
  ruling = guard.Judge(faulty, 10, 59'999);
  EXPECT_FALSE(ruling.holds_back) << "said once";
  EXPECT_EQ(ruling.fail, std::nullopt);
  EXPECT_EQ(guard.Judge(faulty, 10, 60'000).fail, faulty[0]);
  EXPECT_EQ(guard.Judge(faulty, 10, 60'001).next_ms, 70'000);
  EXPECT_EQ(guard.Judge(faulty, 10, 70'000).fail, faulty[1]);
}

TEST(HealthGuardTest, ADeviceThatComesAndGoesDoesNotKeepTheOthersWaiting) {
  HealthGuard guard(kFor);
  const FaultyDevice broken{{"P"}, "a", 0};
  const FaultyDevice flapping{{"Q"}, "b", 0};
  EXPECT_TRUE(guard.Judge({broken, flapping}, 3, 0).holds_back);
  EXPECT_EQ(guard.Judge({broken}, 3, 50'000).fail, std::nullopt);
  const HealthGuard::Ruling ruling = guard.Judge({broken, flapping}, 3, 60'000);
  EXPECT_FALSE(ruling.holds_back);
  EXPECT_EQ(ruling.fail, broken);
}

TEST(HealthGuardTest, AHalfOrASingleOneIsBelieved) {
  for (const std::size_t held : {1u, 4u}) {
    HealthGuard guard(kFor);
    std::vector<FaultyDevice> faulty = {{{"P"}, "a", 0}};
    if (held == 4) faulty.push_back({{"Q"}, "b", 0});
    const HealthGuard::Ruling ruling = guard.Judge(faulty, held, kFor);
    EXPECT_FALSE(ruling.holds_back);
    EXPECT_EQ(ruling.fail, faulty[0]);
  }
}

}  // namespace
}  // namespace devmgr::device
