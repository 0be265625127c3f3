// SPDX-License-Identifier: Apache-2.0
#include "view/health_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "state/views.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using device::Health;
using device::Healthy;
using device::Inventory;
using device::Unhealthy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTpuName[] = "example.com/tpu";

std::vector<std::string> TextsOf(const std::vector<HealthNews>& news) {
  std::vector<std::string> texts;
  for (const HealthNews& one : news) {
    texts.push_back(fmt::format("{} {}", one.device.value,
                                DeviceHealthName(PublicOf(one.health))));
  }
  return texts;
}

class HealthChangesTest : public MomentTest {
 protected:
  /// A pod whose container holds these devices of the plugin.
  void HoldByPlugin(const std::string& name,
                    const std::vector<std::string>& devices) {
    auto pod = MakePod(name, state::PodPhase::kAdmitted);
    state::DeviceHold hold;
    hold.container = "main";
    hold.resource = kTpuName;
    hold.phase = device::ReservationPhase::kCommitted;
    for (const std::string& id : devices) hold.devices.push_back({id, {}});
    pod->holds = {hold};
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  /// A claim of these pods, for which kDriver has prepared a device.
  void HoldByClaim(const std::string& name, const std::string& device,
                   const std::vector<std::string>& pods) {
    auto claim = MakeClaim(name, {});
    claim->pods.clear();
    state::DriverRecord& part = claim->drivers[kDriver];
    part.phase = state::DriverPhase::kPrepared;
    part.boot_id = kBoot;
    state::PreparedDevice& prepared = part.devices.emplace_back();
    prepared.pool = "pool";
    prepared.device = device;
    for (const std::string& pod_name : pods) {
      claim->pods.insert(Uid(pod_name));
      auto pod = MakePod(pod_name, state::PodPhase::kPreparing);
      pod->claims = {claim->uid};
      moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
    }
    moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  }
  static std::vector<std::string> TextsOfChanges(
      const std::vector<DeviceChange>& changes) {
    std::vector<std::string> texts;
    for (const DeviceChange& change : changes) {
      std::vector<std::string> devices;
      for (const DeviceId& id : change.devices) devices.push_back(id.value);
      texts.push_back(fmt::format(
          "{}: {} is {} ({})", change.pod.name, fmt::join(devices, ","),
          change.health ? change.health->name() : "-", change.message));
    }
    return texts;
  }
  /// What all of it says of devices of the driver.
  void Say(std::vector<device::DeviceReport> reports) {
    device::DriverHealth known;
    known.Report(std::move(reports), {0, 1'000});
    moment_.health.drivers.insert_or_assign(kDriver, known);
  }
};

TEST_F(HealthChangesTest, OfANewListOnlyWhatDoesNotWorkIsNews) {
  Inventory inventory;
  inventory.Connect(1, 0);
  const auto first = inventory.Report(1, {Healthy("d0"), Unhealthy("d1")},
                                      device::NobodyHolds, 1);
  const auto news = NewsOf(first, inventory);
  ASSERT_THAT(TextsOf(news), ElementsAre("d1 Unhealthy"));
  EXPECT_EQ(news[0].why, "reported by the plugin");
  const auto second = inventory.Report(1, {Unhealthy("d0"), Healthy("d1")},
                                       device::NobodyHolds, 2);
  EXPECT_THAT(TextsOf(NewsOf(second, inventory)),
              ElementsAre("d0 Unhealthy", "d1 Healthy"));
  const auto same = inventory.Report(1, {Unhealthy("d0"), Healthy("d1")},
                                     device::NobodyHolds, 3);
  EXPECT_THAT(NewsOf(same, inventory), IsEmpty());
}

TEST_F(HealthChangesTest, ADeviceThatIsListedNoMoreIsUnknown) {
  const auto holds_d1 = [](const DeviceId& id) { return id == "d1"; };
  Inventory inventory;
  inventory.Connect(1, 0);
  inventory.Report(1, {Healthy("d0"), Healthy("d1")}, holds_d1, 1);
  const auto news = NewsOf(inventory.Report(1, {}, holds_d1, 2), inventory);
  ASSERT_THAT(TextsOf(news), ElementsAre("d0 Unknown", "d1 Unknown"));
  const std::string why(
      device::HealthReasonText(device::HealthReason::kNotListed));
  EXPECT_EQ(news[0].why, why) << "it is not even in the inventory any more";
  EXPECT_EQ(news[1].why, why);
}

TEST_F(HealthChangesTest, WithoutItsPluginTheHealthOfNoDeviceIsKnown) {
  Inventory inventory = device::Live({Healthy("d0"), Unhealthy("d1")});
  const auto news =
      NewsOf(inventory.Disconnect(1, device::SomebodyHolds, 2), inventory);
  ASSERT_THAT(TextsOf(news), ElementsAre("d0 Unknown", "d1 Unknown"));
  EXPECT_EQ(
      news[0].why,
      std::string(device::HealthReasonText(device::HealthReason::kPluginGone)));
}

TEST_F(HealthChangesTest, DevicesThatAreAlikeAreInOneChangeOfTheirPod) {
  HoldByPlugin("a", {"d0", "d1", "d2"});
  HoldByPlugin("b", {"d3"});
  const auto changes = ChangesOfPlugin(moment_.state, kTpuName,
                                       {{"d0", "", Health::kUnhealthy, "hot"},
                                        {"d1", "", Health::kUnhealthy, "hot"},
                                        {"d2", "", Health::kUnhealthy, "wet"},
                                        {"d3", "", Health::kHealthy, "hot"},
                                        {"d4", "", Health::kUnhealthy, "hot"}});
  EXPECT_THAT(
      TextsOfChanges(changes),
      ElementsAre(": d4 is Unhealthy (hot)", "a: d0,d1 is Unhealthy (hot)",
                  "a: d2 is Unhealthy (wet)", "b: d3 is Healthy (hot)"));
  for (const DeviceChange& change : changes) {
    EXPECT_EQ(change.kind, DeviceChangeKind::kHealthChanged);
    EXPECT_EQ(change.resource, kTpuName);
    EXPECT_EQ(change.driver, "");
    EXPECT_EQ(change.reason, "Reported");
  }
  EXPECT_EQ(changes[1].pod_uid, Uid("a"));
  EXPECT_EQ(changes[0].pod_uid, PodUid());
  EXPECT_THAT(ChangesOfPlugin(moment_.state, kTpuName, {}), IsEmpty());
}

TEST_F(HealthChangesTest, TheSameIdOfAnotherResourceIsAnotherDevice) {
  HoldByPlugin("a", {"d0"});
  const auto changes = ChangesOfPlugin(moment_.state, "example.com/other",
                                       {{"d0", "", Health::kUnhealthy, "hot"}});
  EXPECT_THAT(TextsOfChanges(changes), ElementsAre(": d0 is Unhealthy (hot)"));
}

TEST_F(HealthChangesTest, ADeviceThatSeveralPodsHaveIsInAChangeForEach) {
  HoldByClaim("c", "g0", {"a", "b"});
  const auto changes =
      ChangesOfDriver(moment_.state, kDriver,
                      {{"g0", "pool", Health::kUnhealthy, "hot"},
                       {"g1", "pool", Health::kUnhealthy, "hot"},
                       {"g0", "other", Health::kUnhealthy, "hot"}});
  EXPECT_THAT(
      TextsOfChanges(changes),
      ElementsAre(": g0 is Unhealthy (hot)", ": g1 is Unhealthy (hot)",
                  "a: g0 is Unhealthy (hot)", "b: g0 is Unhealthy (hot)"));
  EXPECT_EQ(changes[0].pool, "other");
  EXPECT_EQ(changes[1].pool, "pool");
  EXPECT_EQ(changes[2].pool, "pool");
  for (const DeviceChange& change : changes) {
    EXPECT_EQ(change.driver, kDriver);
    EXPECT_EQ(change.resource, "");
  }
}

// A reader that begins anew: what works is not named.
TEST_F(HealthChangesTest, ASnapshotBeginsAnewAndNamesWhatDoesNotWork) {
  HoldByPlugin("a", {"d1"});
  HoldByClaim("c", "g1", {"b"});
  const Inventory inventory =
      device::Live({Healthy("d0"), Unhealthy("d1"), Unhealthy("d2")});
  moment_.resources.insert_or_assign(
      kTpuName,
      {inventory.state(), 0, inventory.figures(), inventory.devices()});
  auto slice = std::make_shared<ResourceSlice>();
  slice->driver = kDriver;
  slice->pool = "pool";
  slice->node_name = "n1";
  for (const char* name : {"g0", "g1", "g2"}) {
    slice->devices.emplace_back().name = name;
  }
  ObjectSnapshot objects;
  objects.resource_slices.insert_or_assign({"", "s"}, slice);
  moment_.objects = std::make_shared<const ObjectSnapshot>(objects);
  Say({{{"pool", "g0"}, Health::kHealthy, "", 30'000},
       {{"pool", "g1"}, Health::kUnhealthy, "hot", 30'000}});
  const WallTime now = state::WallTimeOf(5'000);
  const auto all = HealthOfAll(moment_, now);
  ASSERT_THAT(all, SizeIs(5));
  EXPECT_EQ(all[0].kind, DeviceChangeKind::kHealthReset);
  EXPECT_THAT(all[0].devices, IsEmpty());
  EXPECT_FALSE(all[0].health.has_value());
  const auto texts = TextsOfChanges({all.begin() + 1, all.end()});
  EXPECT_EQ(texts[0], ": d2 is Unhealthy (reported by the plugin)");
  EXPECT_EQ(texts[1], "a: d1 is Unhealthy (reported by the plugin)");
  // Nothing is known of g2 by a driver that reports.
  EXPECT_THAT(texts[2], HasSubstr(": g2 is Unknown"));
  EXPECT_EQ(texts[3], "b: g1 is Unhealthy (hot)");
  for (const DeviceChange& change : all) {
    EXPECT_EQ(change.time, now);
    EXPECT_EQ(change.reason, "Snapshot");
    EXPECT_EQ(change.token, ChangeToken());
  }
}

TEST_F(HealthChangesTest, OfADriverThatReportsNothingNothingIsSaid) {
  HoldByClaim("c", "g1", {"b"});
  EXPECT_THAT(HealthOfAll(moment_, {}), SizeIs(1));
}

}  // namespace
}  // namespace devmgr::view
