// SPDX-License-Identifier: Apache-2.0
#include "device/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Nodes = std::vector<std::int64_t>;
using Ids = std::vector<DeviceId>;

/// One selection for pod `P`, with what it depends on.
struct Case {
  std::vector<Device> list;
  std::vector<Reservation> held = {};
  std::int64_t count = 1;
  IdSet reusable = {};
  IdSet planned = {};
  std::optional<Nodes> mask = {};
  bool ask = false;
  std::optional<Ids> answer = {};

  Selection Run() const {
    const Inventory inventory = Live(list);
    const ReservationTable table = TableOf(held);
    return Select({.inventory = inventory,
                   .held = table.Held(kResource),
                   .pod = {"P"},
                   .count = count,
                   .reusable = reusable,
                   .planned = planned,
                   .mask = mask ? &*mask : nullptr,
                   .ask_preference = ask,
                   .preferred = answer ? &*answer : nullptr});
  }
  Ids Chosen() const {
    const Selection selection = Run();
    EXPECT_FALSE(selection.shortage.has_value());
    return IdsOf(selection.devices);
  }
  Shortage Missing() const {
    const Selection selection = Run();
    EXPECT_THAT(selection.devices, IsEmpty());
    Shortage shortage = selection.shortage.value_or(Shortage{});
    shortage.resource = kResource;
    shortage.container = "app";
    return shortage;
  }
};

/// `d0` to `d<n-1>` without nodes.
std::vector<Device> DevicesFromZero(int n) {
  std::vector<Device> list;
  for (int i = 0; i < n; ++i) list.push_back(Healthy("d" + std::to_string(i)));
  return list;
}

std::vector<Device> OnNodes(const std::vector<Nodes>& nodes) {
  std::vector<Device> list = DevicesFromZero(static_cast<int>(nodes.size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) list[i].numa_nodes = nodes[i];
  return list;
}

TEST(SelectionTest, TakesTheLowestIds) {  // W-26
  EXPECT_THAT(
      (Case{.list = {Healthy("d10"), Healthy("d9"), Healthy("d1")}, .count = 2}
           .Chosen()),
      ElementsAre("d1", "d9"));
}

TEST(SelectionTest, LeavesOutWhatIsHeldPlannedOrUnhealthy) {
  std::vector<Device> list = DevicesFromZero(5);
  list[2].health = Health::kUnhealthy;
  EXPECT_THAT((Case{.list = list,
                    .held = {Held("Q", "app", {"d0"})},
                    .count = 2,
                    .planned = {"d1"}}
                   .Chosen()),
              ElementsAre("d3", "d4"));
}

TEST(SelectionTest, GivesTheNodesAtTheTimeOfTheChoice) {  // W-10
  const Selection selection = Case{.list = OnNodes({{0, 1}})}.Run();
  ASSERT_THAT(selection.devices, SizeIs(1));
  EXPECT_THAT(selection.devices[0].numa_nodes, ElementsAre(0, 1));
}

// Reuse.

TEST(SelectionTest, TakesOverBeforeItTakesNewOnes) {
  EXPECT_THAT((Case{.list = DevicesFromZero(4),
                    .held = {Held("P", "init", {"d2"})},
                    .count = 2,
                    .reusable = {"d2"}}
                   .Chosen()),
              ElementsAre("d0", "d2"));
}

TEST(SelectionTest, DoesNotTakeOverWhatIsUnhealthyOrGone) {  // W-28
  std::vector<Device> list = DevicesFromZero(3);
  list[1].health = Health::kUnhealthy;
  EXPECT_THAT((Case{.list = list,
                    .held = {Held("P", "init", {"d1", "d9"})},
                    .count = 2,
                    .reusable = {"d1", "d9"}}
                   .Chosen()),
              ElementsAre("d0", "d2"));
}

TEST(SelectionTest, TakesOverAlignedDevicesFirst) {  // W-28
  EXPECT_THAT((Case{.list = OnNodes({{0}, {}, {1}}),
                    .held = {Held("P", "init", {"d0", "d1", "d2"})},
                    .reusable = {"d0", "d1", "d2"},
                    .mask = {{1}}}
                   .Chosen()),
              ElementsAre("d2"));
}

// NUMA masks.

TEST(SelectionTest, TakesADeviceOfTheMask) {  // DP-092, DP-093
  EXPECT_THAT((Case{.list = OnNodes({{}, {1}}), .mask = {{1}}}.Chosen()),
              ElementsAre("d1"));
  EXPECT_THAT((Case{.list = OnNodes({{0}, {1}}), .mask = {{0}}}.Chosen()),
              ElementsAre("d0"));
  EXPECT_THAT((Case{.list = OnNodes({{0}, {1}}), .mask = {{1}}}.Chosen()),
              ElementsAre("d1"));
}

TEST(SelectionTest, FillsUpFromOtherNodesThenFromNone) {  // DP-094
  EXPECT_THAT((Case{.list = OnNodes({{0}, {1}, {0}, {1}, {0}, {1}}),
                    .count = 4,
                    .mask = {{0}}}
                   .Chosen()),
              ElementsAre("d0", "d1", "d2", "d4"));
  EXPECT_THAT((Case{.list = OnNodes({{}, {1}, {0}}), .count = 2, .mask = {{0}}}
                   .Chosen()),
              ElementsAre("d1", "d2"));
}

TEST(SelectionTest, AMaskMeansNothingToDevicesWithoutNodes) {  // DP-095
  EXPECT_THAT((Case{.list = DevicesFromZero(3), .mask = {{1}}}.Chosen()),
              ElementsAre("d0"));
}

TEST(SelectionTest, SpreadsOverTheNodesOfAMask) {
  EXPECT_THAT((Case{.list = OnNodes({{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}}),
                    .count = 4,
                    .mask = {{1, 3}}}
                   .Chosen()),
              ElementsAre("d2", "d3", "d6", "d7"));
}

// The plugin's preference.

TEST(SelectionTest, AsksWithTheAlignedDevices) {  // DP-081
  const Selection selection = Case{.list = OnNodes({{0}, {0}, {0}, {0}, {1}}),
                                   .mask = {{0}},
                                   .ask = true}
                                  .Run();
  ASSERT_TRUE(selection.question.has_value());
  EXPECT_THAT(selection.question->available,
              ElementsAre("d0", "d1", "d2", "d3"));
  EXPECT_THAT(selection.question->must_include, IsEmpty());
  EXPECT_EQ(selection.question->size, 1);
  EXPECT_THAT(IdsOf(selection.devices), ElementsAre("d0"))
      << "what it would be without an answer";
}

TEST(SelectionTest, AsksForTheRestOfWhatItTakesOver) {  // DP-082
  const Selection selection =
      Case{.list = OnNodes({{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}}),
           .held = {Held("P", "init", {"d0", "d5"})},
           .count = 4,
           .reusable = {"d0", "d5"},
           .mask = {{0}},
           .ask = true}
          .Run();
  ASSERT_TRUE(selection.question.has_value());
  EXPECT_THAT(selection.question->available,
              ElementsAre("d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"));
  EXPECT_THAT(selection.question->must_include, ElementsAre("d0", "d5"));
  EXPECT_EQ(selection.question->size, 4);
}

TEST(SelectionTest, AsksWithAllFreeOnesWhenTheAlignedAreTooFew) {
  const Selection selection = Case{.list = OnNodes({{0}, {1}, {1}, {1}}),
                                   .held = {Held("Q", "app", {"d1"})},
                                   .count = 2,
                                   .mask = {{0}},
                                   .ask = true}
                                  .Run();
  ASSERT_TRUE(selection.question.has_value());
  EXPECT_THAT(selection.question->available, ElementsAre("d0", "d2", "d3"));
  EXPECT_THAT(selection.question->must_include, ElementsAre("d0"));
}

TEST(SelectionTest, DoesNotAskWhenNothingIsLeftToChoose) {
  EXPECT_FALSE((Case{
      .list = OnNodes({{0}, {0}, {1}}), .count = 2, .mask = {{0}}, .ask = true}
                    .Run()
                    .question.has_value()));
  EXPECT_FALSE((Case{.list = DevicesFromZero(2),
                     .held = {Held("P", "init", {"d1"})},
                     .reusable = {"d1"},
                     .ask = true}
                    .Run()
                    .question.has_value()));
}

TEST(SelectionTest, FollowsThePreference) {  // DP-083
  const Case asked{.list = DevicesFromZero(4), .ask = true, .answer = {{"d3"}}};
  EXPECT_THAT(asked.Chosen(), ElementsAre("d3"));
  EXPECT_FALSE(asked.Run().question.has_value());
}

TEST(SelectionTest, LeavesAsideWhatOfThePreferenceCannotBe) {  // DP-084
  EXPECT_THAT((Case{.list = DevicesFromZero(3),
                    .held = {Held("Q", "app", {"d2"})},
                    .ask = true,
                    .answer = {{"d2", "unknown", ""}}}
                   .Chosen()),
              ElementsAre("d0"));
  EXPECT_THAT((Case{.list = OnNodes({{0}, {0}, {1}}),
                    .mask = {{0}},
                    .ask = true,
                    .answer = {{"d2"}}}
                   .Chosen()),
              ElementsAre("d0"))
      << "not aligned";
}

TEST(SelectionTest, FillsUpAPreferenceThatIsTooShort) {  // DP-085
  EXPECT_THAT((Case{.list = OnNodes({{0}, {0}, {0}, {0}}),
                    .count = 3,
                    .mask = {{0}},
                    .ask = true,
                    .answer = {{"d3"}}}
                   .Chosen()),
              ElementsAre("d0", "d1", "d3"));
}

TEST(SelectionTest, TakesTheFirstOfAPreferenceThatIsTooLong) {
  EXPECT_THAT((Case{.list = DevicesFromZero(5),
                    .count = 2,
                    .ask = true,
                    .answer = {{"d4", "d4", "d2", "d1"}}}
                   .Chosen()),
              ElementsAre("d2", "d4"));
}

TEST(SelectionTest, KeepsWhatThePluginLeavesOutOfItsMust) {
  EXPECT_THAT((Case{.list = DevicesFromZero(4),
                    .held = {Held("P", "init", {"d1"})},
                    .count = 2,
                    .reusable = {"d1"},
                    .ask = true,
                    .answer = {{"d2", "d3"}}}
                   .Chosen()),
              ElementsAre("d1", "d2"));
}

TEST(SelectionTest, IgnoresAPreferenceNobodyAskedFor) {
  EXPECT_THAT((Case{.list = DevicesFromZero(4), .answer = {{"d3"}}}.Chosen()),
              ElementsAre("d0"));
}

// Shortages.

TEST(SelectionTest, NamesTheHolders) {  // DP-060
  const Shortage shortage =
      Case{.list = DevicesFromZero(3),
           .held = {Held("Q", "app", {"d0"}), Held("R", "app", {"d1"})},
           .count = 2}
          .Missing();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewFree);
  EXPECT_THAT(shortage.holders, ElementsAre(PodUid{"Q"}, PodUid{"R"}));
  EXPECT_EQ(ShortageText(shortage),
            "resource 'example.com/dev': container 'app' requests 2 devices, "
            "1 of 3 free; others are held by 'Q', 'R'");
  EXPECT_EQ(KubeletShortageText(shortage),
            "requested number of devices unavailable for example.com/dev. "
            "Requested: 2, Available: 1");
}

TEST(SelectionTest, NamesTheUnhealthyDevices) {
  const Shortage shortage =
      Case{.list = {Healthy("a"), Unhealthy("b"), Unhealthy("c")}, .count = 2}
          .Missing();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewHealthy);
  EXPECT_THAT(shortage.devices, ElementsAre("b", "c"));
  EXPECT_EQ(ShortageText(shortage),
            "resource 'example.com/dev': container 'app' requests 2 devices, "
            "1 of 3 free; not healthy: 'b', 'c'");
  EXPECT_THAT(KubeletShortageText(shortage), HasSubstr("Available: 1"));
}

TEST(SelectionTest, KubeletHasAnotherTextWhenNoneIsHealthy) {
  EXPECT_EQ(KubeletShortageText(Case{.list = {Unhealthy("b")}}.Missing()),
            "no healthy devices present; cannot allocate unhealthy devices "
            "example.com/dev");
}

TEST(SelectionTest, TellsWhenTheNodeHasNotSoMany) {
  const Shortage shortage = Case{.list = DevicesFromZero(3),
                                 .held = {Held("Q", "app", {"d0"})},
                                 .count = 4}
                                .Missing();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewExist);
  EXPECT_EQ(ShortageText(shortage),
            "resource 'example.com/dev': container 'app' requests 4 devices, "
            "this node has 3");
  EXPECT_THAT(ShortageText(Case{.list = {}}.Missing()),
              testing::EndsWith("container 'app' requests 1 device, this node "
                                "has 0"));
}

// It used to say that 1 device was requested, of 2 that there are.
TEST(SelectionTest, AShortageTellsWhatIsTakenOverAndWhatThePodHasItself) {
  EXPECT_EQ(ShortageText(Case{.list = DevicesFromZero(2),
                              .held = {Held("P", "warm", {"d0", "d1"})},
                              .count = 3,
                              .reusable = {"d0", "d1"}}
                             .Missing()),
            "resource 'example.com/dev': container 'app' requests 3 devices (2 "
            "taken over from init containers), this node has 2");
  EXPECT_EQ(
      ShortageText(
          Case{.list = DevicesFromZero(2), .count = 2, .planned = {"d0"}}
              .Missing()),
      "resource 'example.com/dev': container 'app' requests 2 devices, this "
      "node has 2 (1 for other containers of the pod)");
}

TEST(SelectionTest, WhatThePodItselfHasWillNotBecomeFree) {
  const Shortage shortage = Case{
      .list = DevicesFromZero(3),
      .held = {Held("P", "app", {"d0"})},
      .count = 2,
      .planned = {"d1"}}.Missing();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewExist);
  EXPECT_THAT(shortage.holders, IsEmpty());
}

TEST(SelectionTest, CountsWhatRemainsAfterTakingOver) {
  const Shortage shortage = Case{
      .list = DevicesFromZero(3),
      .held = {Held("P", "init", {"d0"}), Held("Q", "app", {"d1"})},
      .count = 3,
      .reusable = {"d0"}}.Missing();
  EXPECT_EQ(shortage.requested, 2);
  EXPECT_EQ(shortage.available, 1);
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewFree);
}

TEST(SelectionTest, DoesNotMindHugeRequests) {
  EXPECT_EQ(
      (Case{.list = DevicesFromZero(3), .count = INT64_MAX}.Missing().kind),
      Shortage::Kind::kTooFewExist);
}

TEST(SelectionTest, NamesTheFirstFewOfMany) {
  std::vector<Device> list;
  std::vector<Reservation> held;
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    list.push_back(Unhealthy("bad-" + number));
    list.push_back(Healthy("good-" + number));
    held.push_back(Held("pod-" + number, "app", {"good-" + number}));
  }
  const Shortage shortage = Case{.list = list, .held = held}.Missing();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewFree);
  EXPECT_THAT(shortage.holders, SizeIs(Shortage::kMaxNames));
  EXPECT_THAT(shortage.devices, SizeIs(Shortage::kMaxNames));
  EXPECT_THAT(ShortageText(shortage), HasSubstr("', ..."));
}

}  // namespace
}  // namespace devmgr::device
