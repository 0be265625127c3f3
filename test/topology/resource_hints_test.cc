// SPDX-License-Identifier: Apache-2.0
#include "topology/resource_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/devices.h"

namespace devmgr::topology {
namespace {

using device::Healthy;
using device::Held;
using device::Live;
using device::Reservation;
using device::TableOf;
using device::Unhealthy;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

const NumaNodes kMachine = {0, 1};
const Hint kOn0 = {{0}, true};
const Hint kOn1 = {{1}, true};
const Hint kWide = {{0, 1}, false};
const Hint kWidePreferred = {{0, 1}, true};

/// Two devices on each node.
std::vector<device::Device> TwoAndTwo() {
  return {Healthy("D1", {0}), Healthy("D2", {0}), Healthy("D3", {1}),
          Healthy("D4", {1})};
}

/// The hint table of the kubelet, once for a container and once for the pod
/// (DP-087, DP-088). Since 1.36 nodes without devices are in no hint.
class HintTableTest : public testing::TestWithParam<bool> {
 protected:
  auto HintsFor(std::vector<device::Device> list, std::int64_t count,
                const std::vector<Reservation>& held = {}) const {
    return HintsOf(Live(std::move(list)), TableOf(held),
                   {.pod = {"P"},
                    .container = GetParam() ? "" : "app",
                    .resource = device::kResource,
                    .count = count},
                   kMachine)
        .hints;
  }
};

TEST_P(HintTableTest, NoOpinionWithoutAnyNode) {  // Row 1
  EXPECT_EQ(HintsFor({Healthy("D1"), Healthy("D2", {}), Healthy("D3")}, 1),
            std::nullopt);
}

TEST_P(HintTableTest, DevicesWithoutNodeAreLeftOut) {  // Row 2
  EXPECT_THAT(HintsFor({Healthy("D1"), Healthy("D2", {1})}, 1),
              Optional(ElementsAre(kOn1)));
}

TEST_P(HintTableTest, OneDevicePerNode) {  // Rows 3 and 4
  const std::vector<device::Device> list = {Healthy("D1", {0}),
                                            Healthy("D2", {1})};
  EXPECT_THAT(HintsFor(list, 1), Optional(ElementsAre(kOn0, kOn1, kWide)));
  EXPECT_THAT(HintsFor(list, 2), Optional(ElementsAre(kWidePreferred)));
}

TEST_P(HintTableTest, PreferredIsWhatAnEmptyMachineWouldNeed) {  // Rows 5, 6
  const std::vector<device::Device> list = {
      Healthy("D1", {0}), Healthy("D2", {1}), Healthy("D3", {0}),
      Healthy("D4", {1})};
  EXPECT_THAT(HintsFor(list, 2), Optional(ElementsAre(kOn0, kOn1, kWide)));
  EXPECT_THAT(HintsFor(list, 2, {Held("Q", "app", {"D1", "D2"})}),
              Optional(ElementsAre(kWide)));
}

TEST_P(HintTableTest, TooManyCannotBeServed) {  // Row 7
  EXPECT_THAT(HintsFor(TwoAndTwo(), 6), Optional(IsEmpty()));
}

TEST_P(HintTableTest, WhatIsHeldAlreadyGetsItsHintsAgain) {  // Row 8
  EXPECT_THAT(HintsFor({Healthy("D1", {0}), Healthy("D2", {0})}, 2,
                       {Held("P", "app", {"D1", "D2"})}),
              Optional(ElementsAre(kOn0)));
}

TEST_P(HintTableTest, AnotherNumberThanHeldCannotBeServed) {  // Rows 9 and 10
  EXPECT_THAT(HintsFor(TwoAndTwo(), 4, {Held("P", "app", {"D1", "D2"})}),
              Optional(IsEmpty()));
  EXPECT_THAT(
      HintsFor(TwoAndTwo(), 2, {Held("P", "app", {"D1", "D2", "D3", "D4"})}),
      Optional(IsEmpty()));
}

TEST_P(HintTableTest, NothingIsAskedFor) {
  EXPECT_EQ(HintsFor(TwoAndTwo(), 0), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(ContainerAndPod, HintTableTest, testing::Bool());

TEST(ResourceHintsTest, UnhealthyDevicesCountForThePreferenceOnly) {
  EXPECT_THAT(
      HintsOf(
          Live({Healthy("D1", {0}), Unhealthy("D2", {0}), Healthy("D3", {1})}),
          {}, {.pod = {"P"}, .resource = device::kResource, .count = 2},
          kMachine)
          .hints,
      Optional(ElementsAre(kWide)));
}

TEST(ResourceHintsTest, ReusableDevicesDrawTheContainerToThem) {
  EXPECT_THAT(HintsOf(Live(TwoAndTwo()), TableOf({Held("P", "init", {"D1"})}),
                      {.pod = {"P"},
                       .container = "app",
                       .resource = device::kResource,
                       .count = 2,
                       .reusable = {"D1"}},
                      kMachine)
                  .hints,
              Optional(ElementsAre(kOn0, kWide)));
}

TEST(ResourceHintsTest, HeldDevicesThatVanishedHaveTheirRecordedNodes) {
  Reservation held = Held("P", "app", {"gone", "lost"});
  for (device::HeldDevice& device : held.devices) device.numa_nodes = {1};
  EXPECT_THAT(HintsOf(Live({Healthy("D1", {0})}), TableOf({held}),
                      {.pod = {"P"},
                       .container = "app",
                       .resource = device::kResource,
                       .count = 2},
                      kMachine)
                  .hints,
              Optional(ElementsAre(kOn1, kWide)));
}

TEST(ResourceHintsTest, AWholePodCountsADeviceHandedOnOnce) {
  Reservation init = Held("P", "init", {"D1", "D2"});
  init.kind = device::ContainerKind::kInit;
  EXPECT_THAT(
      HintsOf(Live(TwoAndTwo()), TableOf({init, Held("P", "app", {"D1"})}),
              {.pod = {"P"}, .resource = device::kResource, .count = 2},
              kMachine)
          .hints,
      Optional(ElementsAre(kOn0, kWide)));
}

device::InventoryMap TwoResources(std::vector<device::Device> second) {
  device::InventoryMap inventories;
  inventories.emplace("r1", Live(TwoAndTwo()));
  inventories.emplace("r2", Live(std::move(second)));
  return inventories;
}

MATCHER_P(HintsAre, matcher, "") {
  return testing::ExplainMatchResult(matcher, arg.hints, result_listener);
}

// DP-074: lists that arrive meanwhile race with nothing, since hints are a
// function of values: they follow what they are given, and change none of it.
TEST(PodHintsTest, HintsFollowTheValuesTheyAreGiven) {
  auto inventories = TwoResources({Healthy("D1", {0})});
  const auto hints = [&] {
    return PodHints({"P"}, {{"app", device::ContainerKind::kApp, "r2", 1}},
                    inventories, {}, kMachine);
  };
  const auto before = hints();
  EXPECT_THAT(before,
              ElementsAre(Pair("r2", HintsAre(Optional(ElementsAre(kOn0))))));
  inventories.at("r2").Report(1, {Healthy("D1", {1})}, device::NobodyHolds, 1);
  EXPECT_THAT(hints(),
              ElementsAre(Pair("r2", HintsAre(Optional(ElementsAre(kOn1))))));
  EXPECT_THAT(before,
              ElementsAre(Pair("r2", HintsAre(Optional(ElementsAre(kOn0))))));
}

TEST(PodHintsTest, EachResourceHasItsOwn) {  // DP-089
  const auto inventories = TwoResources({Healthy("D1", {0})});
  EXPECT_THAT(
      PodHints({"P"},
               {{"app", device::ContainerKind::kApp, "r1", 2},
                {"app", device::ContainerKind::kApp, "r2", 1}},
               inventories, {}, kMachine),
      ElementsAre(
          Pair("r1", HintsAre(Optional(ElementsAre(kOn0, kOn1, kWide)))),
          Pair("r2", HintsAre(Optional(ElementsAre(kOn0))))));
}

TEST(PodHintsTest, ContainersAddUpAndUnknownResourcesAreAbsent) {  // DP-091
  const auto inventories = TwoResources(TwoAndTwo());
  const auto app = device::ContainerKind::kApp;
  EXPECT_THAT(
      PodHints({"P"},
               {{"a", app, "r1", 1},
                {"a", app, "r2", 1},
                {"b", app, "r1", 1},
                {"b", app, "r2", 1},
                {"c", app, "unregistered", 1}},
               inventories, {}, kMachine),
      ElementsAre(
          Pair("r1", HintsAre(Optional(ElementsAre(kOn0, kOn1, kWide)))),
          Pair("r2", HintsAre(Optional(ElementsAre(kOn0, kOn1, kWide))))));
}

}  // namespace
}  // namespace devmgr::topology
