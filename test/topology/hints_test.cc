// SPDX-License-Identifier: Apache-2.0
#include "topology/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "support/random_lives.h"

namespace devmgr::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

NumaNodes Machine(std::int64_t nodes) {
  NumaNodes all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// One free device on each of the nodes from 0 on.
std::vector<DeviceGroup> OnePerNode(std::int64_t nodes) {
  std::vector<DeviceGroup> groups;
  for (std::int64_t node = 0; node < nodes; ++node) {
    groups.push_back({.nodes = {node}, .known = 1, .free = 1});
  }
  return groups;
}

TEST(HintsTest, ADeviceOnTwoNodesServesEach) {  // DP-090
  EXPECT_THAT(
      GenerateHints({{.nodes = {0, 1}, .known = 1, .free = 1}}, 1, {0, 1})
          .hints,
      Optional(
          ElementsAre(Hint{{0}, true}, Hint{{1}, true}, Hint{{0, 1}, false})));
}

TEST(HintsTest, DevicesWithoutNodesDoNotCount) {
  EXPECT_THAT(GenerateHints({{.nodes = {}, .known = 5, .free = 5},
                             {.nodes = {0}, .known = 1, .free = 1}},
                            2, {0, 1})
                  .hints,
              Optional(IsEmpty()));
}

TEST(HintsTest, NodesThatTheMachineHasNotDoNotCount) {
  EXPECT_THAT(
      GenerateHints({{.nodes = {7}, .known = 1, .free = 1}}, 1, {0, 1}).hints,
      Optional(IsEmpty()));
  EXPECT_THAT(
      GenerateHints({{.nodes = {1, 7}, .known = 1, .free = 1}}, 1, {0, 1})
          .hints,
      Optional(ElementsAre(Hint{{1}, true})));
}

TEST(HintsTest, NodesNeedNotBeNumberedInARow) {
  EXPECT_THAT(GenerateHints({{.nodes = {0}, .known = 1},
                             {.nodes = {8}, .known = 1, .free = 1}},
                            1, {0, 8})
                  .hints,
              Optional(ElementsAre(Hint{{8}, true}, Hint{{0, 8}, false})));
}

TEST(HintsTest, AllReusableDevicesMustBeTouched) {
  EXPECT_THAT(GenerateHints({{.nodes = {0}, .known = 2, .reusable = 1},
                             {.nodes = {1}, .known = 2, .free = 2}},
                            1, {0, 1})
                  .hints,
              Optional(ElementsAre(Hint{{0}, true}, Hint{{0, 1}, false})));
  EXPECT_THAT(GenerateHints({{.nodes = {0}, .known = 1, .reusable = 1},
                             {.nodes = {1}, .known = 1, .reusable = 1}},
                            1, {0, 1})
                  .hints,
              Optional(ElementsAre(Hint{{0, 1}, false})));
}

TEST(HintsTest, ReusableDevicesWithoutNodesAreLeftAside) {
  EXPECT_THAT(GenerateHints({{.nodes = {}, .known = 1, .reusable = 1},
                             {.nodes = {1}, .known = 1, .free = 1}},
                            1, {0, 1})
                  .hints,
              Optional(ElementsAre(Hint{{1}, true})));
}

// Since 1.36: held and broken devices count, nodes that have none do not.
TEST(HintsTest, NodesWithoutDevicesAreInNoHint) {
  EXPECT_THAT(
      GenerateHints({{.nodes = {0}, .known = 1, .free = 1}}, 1, {0, 1}).hints,
      Optional(ElementsAre(Hint{{0}, true})));
  EXPECT_THAT(GenerateHints({{.nodes = {1}, .known = 1, .free = 1},
                             {.nodes = {4}, .known = 1}},
                            1, Machine(8))
                  .hints,
              Optional(ElementsAre(Hint{{1}, true}, Hint{{1, 4}, false})));
}

// The rule as upstream words it: every subset, no short cuts.
std::uint32_t Carrying(const std::vector<DeviceGroup>& groups) {
  std::uint32_t carrying = 0;
  for (const DeviceGroup& group : groups) {
    if (group.known == 0) continue;
    for (const std::int64_t node : group.nodes) carrying |= 1u << node;
  }
  return carrying;
}

std::vector<Hint> AllHints(const std::vector<DeviceGroup>& groups,
                           std::int64_t count, std::int64_t machine) {
  const std::uint32_t carrying = Carrying(groups);
  auto minimum = static_cast<std::size_t>(std::popcount(carrying));
  std::vector<Hint> hints;
  for (std::uint32_t mask = 1; mask < 1u << machine; ++mask) {
    if ((mask & ~carrying) != 0) continue;
    std::int64_t known = 0;
    std::int64_t available = 0;
    bool rejected = false;
    for (const DeviceGroup& group : groups) {
      const bool touches = std::any_of(
          group.nodes.begin(), group.nodes.end(),
          [&](std::int64_t node) { return (mask >> node & 1) != 0; });
      if (touches) known += group.known;
      if (touches) available += group.free + group.reusable;
      if (!touches && group.reusable > 0 && !group.nodes.empty()) {
        rejected = true;
      }
    }
    const auto size = static_cast<std::size_t>(std::popcount(mask));
    if (known >= count) minimum = std::min(minimum, size);
    if (rejected || available < count) continue;
    Hint hint;
    for (std::int64_t node = 0; node < machine; ++node) {
      if ((mask >> node & 1) != 0) hint.nodes.push_back(node);
    }
    hints.push_back(hint);
  }
  std::sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) {
    return a.nodes.size() != b.nodes.size() ? a.nodes.size() < b.nodes.size()
                                            : a.nodes < b.nodes;
  });
  for (Hint& hint : hints) hint.preferred = hint.nodes.size() == minimum;
  return hints;
}

std::vector<Hint> PreferredOf(std::vector<Hint> hints) {
  std::erase_if(hints, [](const Hint& hint) { return !hint.preferred; });
  return hints;
}

std::vector<DeviceGroup> RandomGroups(Luck& luck, int machine) {
  std::vector<DeviceGroup> groups(static_cast<std::size_t>(1 + luck.Below(6)));
  for (DeviceGroup& group : groups) {
    const int share = 1 + luck.Below(4);
    for (int node = 0; node < machine; ++node) {
      if (luck.Below(machine) < share) group.nodes.push_back(node);
    }
    group.free = luck.Below(3);
    group.reusable = luck.Below(8) == 0 ? 1 : 0;
    group.known = group.free + group.reusable + luck.Below(2);
  }
  return groups;
}

TEST(HintsTest, FindsWhatTryingEverySetFinds) {
  LiveEach({1, 2'000}, [](Luck& luck) {
    const int machine = 1 + luck.Below(6);
    const auto groups = RandomGroups(luck, machine);
    const std::int64_t count = 1 + luck.Below(5);
    const Hints hints = GenerateHints(groups, count, Machine(machine));
    ASSERT_FALSE(hints.truncated);
    ASSERT_THAT(hints.hints, Optional(AllHints(groups, count, machine)));
  });
}

// W-25: where many nodes have devices at least all preferred ones, and all
// nodes.
TEST(HintsTest, OnALargeMachineThePreferredOnesAreTheSame) {
  LiveEach({2, 200}, [](Luck& luck) {
    constexpr int machine = 11;
    auto groups = RandomGroups(luck, machine);
    // Most of the time all nodes have devices.
    if (luck.Chance(70))
      groups.push_back({.nodes = Machine(machine), .known = 1});
    const std::int64_t count = 1 + luck.Below(5);
    const auto all = AllHints(groups, count, machine);
    const Hints hints = GenerateHints(groups, count, Machine(machine));
    ASSERT_FALSE(hints.truncated);
    ASSERT_TRUE(hints.hints.has_value());
    if (std::popcount(Carrying(groups)) <= 8) {
      ASSERT_EQ(*hints.hints, all);
      return;
    }
    // What upstream would prefer, of nodes that carry devices.
    std::vector<Hint> preferred = PreferredOf(*hints.hints);
    for (const Hint& hint : PreferredOf(all)) {
      ASSERT_NE(std::find(preferred.begin(), preferred.end(), hint),
                preferred.end());
    }
    ASSERT_EQ(preferred, PreferredOf(all));
    ASSERT_EQ(hints.hints->empty(), all.empty());
    if (!all.empty()) {
      ASSERT_EQ(hints.hints->back(), all.back());
      ASSERT_EQ(hints.hints->front().nodes.size(), all.front().nodes.size());
    }
  });
}

TEST(HintsTest, ThirtyFourNodesAreFine) {  // W-25
  for (const std::int64_t count : {1, 2, 3, 17, 33, 34}) {
    const Hints hints = GenerateHints(OnePerNode(34), count, Machine(34));
    ASSERT_TRUE(hints.hints.has_value());
    EXPECT_EQ(hints.hints->front().nodes, Machine(count));
    EXPECT_TRUE(hints.hints->front().preferred);
    EXPECT_EQ(hints.hints->back().nodes, Machine(34));
    EXPECT_LE(hints.hints->size(), HintLimits{}.hints + 1);
    EXPECT_LE(hints.steps, HintLimits{}.steps + 34);
  }
  EXPECT_THAT(GenerateHints(OnePerNode(34), 1, Machine(34)).hints,
              Optional(SizeIs(34 + 1)));
}

TEST(HintsTest, OnlyNodesThatCarryDevicesAreCombined) {
  // As with GPUs whose memory is nodes of its own.
  const Hints hints = GenerateHints({{.nodes = {0}, .known = 4, .free = 3},
                                     {.nodes = {1}, .known = 4, .free = 4}},
                                    4, Machine(34));
  EXPECT_THAT(hints.hints,
              Optional(ElementsAre(Hint{{1}, true}, Hint{{0, 1}, false})));
  EXPECT_LT(hints.steps, 100u);
}

TEST(HintsTest, AWiderSetThanNeededIsNotPreferred) {
  auto groups = OnePerNode(20);
  groups[0].known = 2;
  const Hints hints = GenerateHints(groups, 2, Machine(20));
  EXPECT_THAT(hints.hints, Optional(SizeIs(20 * 19 / 2 + 1)));
  EXPECT_THAT(PreferredOf(*hints.hints), IsEmpty());
}

TEST(HintsTest, AHopelessSearchEndsAtItsLimit) {
  // Overlapping pairs make the bound loose.
  std::vector<DeviceGroup> groups;
  for (std::int64_t a = 0; a < 34; ++a) {
    for (std::int64_t b = a + 1; b < 34; ++b) {
      groups.push_back({.nodes = {a, b}, .known = 1, .free = 1});
    }
  }
  const auto all = static_cast<std::int64_t>(groups.size());
  const Hints hints = GenerateHints(groups, all - 30, Machine(34));
  EXPECT_TRUE(hints.truncated);
  EXPECT_LE(hints.steps, HintLimits{}.steps + groups.size());
  EXPECT_THAT(hints.hints, Optional(ElementsAre(Hint{Machine(34), false})));
}

TEST(HintsTest, TheNumberOfHintsIsBounded) {
  const Hints hints =
      GenerateHints(OnePerNode(34), 5, Machine(34), {.hints = 10});
  EXPECT_TRUE(hints.truncated);
  ASSERT_THAT(hints.hints, Optional(SizeIs(11)));
  EXPECT_TRUE(hints.hints->front().preferred);
  EXPECT_EQ(hints.hints->back().nodes, Machine(34));
}

TEST(HintsTest, MoreThanSixtyFourCarryingNodesGetTheWidestHint) {
  const Hints hints = GenerateHints(OnePerNode(65), 1, Machine(128));
  EXPECT_TRUE(hints.truncated);
  EXPECT_THAT(hints.hints, Optional(ElementsAre(Hint{Machine(65), false})));
  EXPECT_THAT(GenerateHints(OnePerNode(65), 66, Machine(128)).hints,
              Optional(IsEmpty()));
  EXPECT_FALSE(GenerateHints(OnePerNode(64), 1, Machine(128)).truncated);
}

}  // namespace
}  // namespace devmgr::topology
