// SPDX-License-Identifier: Apache-2.0
#include "topology/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random_lives.h"
#include "topology/all_combinations.h"
#include "topology/mask_order.h"
#include "topology/masks.h"

namespace devmgr::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What the three policies make of lists.
class Merged {
 public:
  Merged(int nodes, std::vector<TopologyHintList> lists)
      : machine_{FirstNodes(nodes), FourNodes()},
        lists_(ListsOf(std::move(lists))) {}

  MergedHint Under(Policy policy, bool prefer_closest = false) const {
    return topology::Merge({.policy = policy, .prefer_closest = prefer_closest},
                           machine_, lists_);
  }
  TopologyHint BestEffort() const { return Under(Policy::kBestEffort).hint; }
  TopologyHint Closest() const { return Under(Policy::kBestEffort, true).hint; }
  TopologyHint Single() const { return Under(Policy::kSingleNumaNode).hint; }
  /// By best-effort, restricted and single-numa-node.
  std::vector<bool> Admitted() const {
    return {Under(Policy::kBestEffort).admitted,
            Under(Policy::kRestricted).admitted,
            Under(Policy::kSingleNumaNode).admitted};
  }

 private:
  NumaMachine machine_;
  std::vector<ResourceHints> lists_;
};

const TopologyHintList kAbsent = std::nullopt;
const TopologyHintList kEmpty = std::vector<TopologyHint>();

TopologyHintList L(std::vector<TopologyHint> hints) { return hints; }

TEST(MergeTest, NoProvidersMeansAllNodesPreferred) {  // BO-127
  const Merged merged(2, {});
  EXPECT_EQ(merged.BestEffort(), P({0, 1}));
  EXPECT_EQ(merged.Single(), kAnyP);
  EXPECT_THAT(merged.Admitted(), ElementsAre(true, true, true));
}

TEST(MergeTest, WhatCannotBeServedIsRefused) {  // BO-128
  const Merged merged(2, {kEmpty});
  EXPECT_EQ(merged.BestEffort(), N({0, 1}));
  EXPECT_EQ(merged.Single(), kAnyN);
  EXPECT_THAT(merged.Admitted(), ElementsAre(true, false, false));
}

TEST(MergeTest, NoOpinionChangesNothing) {  // BO-129
  EXPECT_EQ(Merged(2, {kAbsent}).BestEffort(), P({0, 1}));
  const Merged merged(2, {L({P({0})}), kAbsent});
  EXPECT_EQ(merged.BestEffort(), P({0}));
  EXPECT_EQ(merged.Single(), P({0}));
}

TEST(MergeTest, NothingInCommonIsAllNodesNotPreferred) {  // BO-130
  const Merged merged(2, {L({P({0})}), L({P({1})})});
  EXPECT_EQ(merged.BestEffort(), N({0, 1}));
  EXPECT_EQ(merged.Single(), kAnyN);
  EXPECT_THAT(merged.Admitted(), ElementsAre(true, false, false));
}

TEST(MergeTest, PreferredMasksThatDifferAreNotPreferred) {  // BO-131
  const Merged merged(2, {L({P({0})}), L({P({0, 1})})});
  EXPECT_EQ(merged.BestEffort(), N({0}));
  EXPECT_EQ(merged.Single(), kAnyN);
}

TEST(MergeTest, TheCommonNodeIsFound) {  // BO-132, BO-133
  EXPECT_EQ(
      Merged(2, {L({P({0}), P({1})}), L({P({0}), N({0, 1})})}).BestEffort(),
      P({0}));
  EXPECT_EQ(Merged(2, {L({P({1}), N({0, 1})}), L({P({0}), P({1}), N({0, 1})})})
                .BestEffort(),
            P({1}));
  // Both of one provider.
  std::vector<ResourceHints> lists =
      ListsOf({L({P({1}), N({0, 1})}), L({P({0}), P({1}), N({0, 1})})});
  for (ResourceHints& list : lists) list.provider = "p";
  EXPECT_EQ(Merge({.policy = Policy::kRestricted}, {FirstNodes(2)}, lists).hint,
            P({1}));
}

TEST(MergeTest, AWiderPreferredBeatsANarrowerOther) {  // BO-134
  const Merged merged(2, {L({P({0, 1}), N({0})})});
  EXPECT_EQ(merged.BestEffort(), P({0, 1}));
  EXPECT_THAT(merged.Admitted(), ElementsAre(true, true, false));
}

TEST(MergeTest, OthersComeAsCloseAsTheyCanToTheNeedOfTheWidest) {
  EXPECT_EQ(Merged(2, {L({P({0}), P({1})}), L({N({0, 1})})}).BestEffort(),
            N({0}));  // BO-135
  EXPECT_EQ(Merged(2, {L({P({0, 1})}), L({P({0}), N({0, 1})})}).BestEffort(),
            N({0, 1}));  // BO-136
}

TEST(MergeTest, AmongEqualSizesTheLowerNumberWins) {  // BO-137
  const auto pairs = L({P({0, 1}), P({0, 2})});
  EXPECT_EQ(Merged(4, {pairs, pairs}).BestEffort(), P({0, 1}));
}

TEST(MergeTest, ANarrowerIntersectionIsNotTaken) {  // BO-138
  const auto wide = L({N({0, 1, 2, 3}), N({0, 1})});
  EXPECT_EQ(Merged(4, {wide, L({N({0, 3})})}).BestEffort(), N({0, 3}));
  EXPECT_EQ(Merged(4, {wide, L({N({0, 1})})}).BestEffort(), N({0, 1}));
  EXPECT_EQ(Merged(4, {wide, L({N({0, 1})})}).Closest(), N({0, 1}));
}

TEST(MergeTest, DistancesBreakTiesWhereTheyCount) {
  const auto wide = L({N({0, 1, 2, 3}), N({0, 1})});
  const Merged two(4, {wide, L({N({1, 2}), N({2, 3})})});  // BO-139
  EXPECT_EQ(two.BestEffort(), N({1, 2}));
  EXPECT_EQ(two.Closest(), N({2, 3}));
  const Merged four(4,
                    {wide, L({N({1, 2, 3}), N({1, 2}), N({1, 3}), N({2, 3})})});
  EXPECT_EQ(four.BestEffort(), N({1, 2}));
  EXPECT_EQ(four.Closest(), N({2, 3}));
  const Merged one(4, {L({P({0, 2}), P({1, 3}), P({2, 3})})});  // BO-140
  EXPECT_EQ(one.BestEffort(), P({0, 2}));
  EXPECT_EQ(one.Closest(), P({2, 3}));
}

TEST(MergeTest, TheNumberOfNodesGoesBeforeTheirDistance) {  // BO-141
  EXPECT_EQ(Merged(4, {L({P({0, 1, 2}), P({0, 3})})}).Closest(), P({0, 3}));
}

TEST(MergeTest, RestrictedAdmitsMoreThanOneNode) {  // BO-142
  const Merged merged(2, {L({P({0, 1})}), L({P({0}), P({0, 1})})});
  EXPECT_EQ(merged.Under(Policy::kRestricted).hint, P({0, 1}));
  EXPECT_TRUE(merged.Under(Policy::kRestricted).admitted);
}

TEST(MergeTest, ASingleNodeHasNoUseForDistances) {  // BO-143
  const Merged merged(2, {L({P({0, 1}), P({0}), P({1})})});
  EXPECT_EQ(merged.Under(Policy::kSingleNumaNode, true).hint, P({0}));
  EXPECT_EQ(merged.Single(), P({0}));
}

TEST(MergeTest, TheOnlyNodeIsAnyNode) {  // BO-144
  const Merged merged(1, {L({P({0})})});
  EXPECT_EQ(merged.BestEffort(), P({0}));
  EXPECT_EQ(merged.Single(), kAnyP);
}

TEST(MergeTest, TheWidestNeedIsTheMostOfTheLeast) {  // BO-145
  // Nine nodes: what is chosen shows which size is aimed at.
  const Merged merged(9,
                      {L({N({0})}), L({N({0, 1}), N({0, 1, 2, 3})}),
                       L({N({0, 1, 2}), N({0, 1, 2, 3})}), L({kAnyN, kAnyP})});
  EXPECT_EQ(merged.BestEffort(), N({0}));
  EXPECT_EQ(AllCombinations::BestCountOf({{N({0})},
                                          {N({0, 1}), N({0, 1, 2, 3})},
                                          {N({0, 1, 2}), N({0, 1, 2, 3})},
                                          {kAnyN, kAnyP}}),
            3);
  EXPECT_EQ(Merged(9, {L({N({0, 1, 2}), N({3, 4, 5, 6})}),
                       L({N({0}), N({0, 1, 2, 3}), N({3, 4, 5, 6})})})
                .BestEffort(),
            N({0, 1, 2}));
}

TEST(MergeTest, EachPairOfSizesIsRankedAsUpstreamRanksIt) {  // BO-146
  // One list gives both masks; another one, of pairs, sets the size aimed at.
  const auto best_of = [](std::initializer_list<int> current,
                          std::initializer_list<int> next) {
    const NumaMachine machine{FirstNodes(8)};
    const AllCombinations all({.policy = Policy::kBestEffort}, machine);
    return all.Choose(N(current), N(next), 2);
  };
  EXPECT_EQ(best_of({0, 1, 2}, {4, 5}), N({4, 5}));
  EXPECT_EQ(best_of({0, 1, 2}, {4, 5, 6, 7}), N({0, 1, 2}));
  EXPECT_EQ(best_of({0, 1}, {4, 5, 6}), N({0, 1}));
  EXPECT_EQ(best_of({0, 1}, {4}), N({0, 1}));
  EXPECT_EQ(best_of({0}, {4, 5}), N({4, 5}));
  EXPECT_EQ(best_of({0}, {4, 5, 6}), N({0}));
  // The same by ours: the pairs lie in all nodes.
  const auto aim = N({6, 7});
  const auto all = N({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(
      Merged(8, {L({N({0, 1, 2}), N({4, 5})}), L({aim, all})}).BestEffort(),
      N({4, 5}));
  EXPECT_EQ(Merged(8, {L({N({0}), N({1, 2, 3})}), L({aim, all})}).BestEffort(),
            N({0}));
}

TEST(NumaDistancesTest, AveragesHaveEachNodeWithItself) {  // BO-147
  NumaDistances distances;
  const std::vector<std::vector<std::uint32_t>> rows = {
      {10, 11, 12, 12}, {11, 10, 12, 12}, {12, 12, 10, 11}, {12, 12, 11, 10}};
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      distances.Set(
          a, b, rows[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]);
    }
  }
  const auto average = [&](std::initializer_list<int> nodes) {
    const NumaMask mask = MaskOf(nodes);
    return static_cast<double>(distances.SumOver(mask)) /
           (mask.Count() * mask.Count());
  };
  EXPECT_DOUBLE_EQ(average({0}), 10);
  EXPECT_DOUBLE_EQ(average({0, 1}), 10.5);
  EXPECT_DOUBLE_EQ(average({0, 2}), 11);
  EXPECT_DOUBLE_EQ(average({0, 2, 3}), 100.0 / 9);
  EXPECT_EQ(distances.SumOver({}), 0u);
}

TEST(MergeTest, UnderNoneAllIsAdmittedWithoutAHint) {
  const MergedHint merged = Merged(2, {kEmpty}).Under(Policy::kNone);
  EXPECT_TRUE(merged.admitted);
  EXPECT_EQ(merged.hint, kAnyN);
}

TEST(MergeTest, ARefusalNamesWhatIsInTheWay) {  // BO-148
  EXPECT_STREQ(kAffinityReason, "TopologyAffinityError");
  EXPECT_STREQ(kAffinityText,
               "Resources cannot be allocated with Topology locality");
  const auto text = [](Policy policy, std::vector<TopologyHintList> lists,
                       bool truncated = false) {
    auto resources = ListsOf(std::move(lists));
    if (truncated) resources.back().truncated = true;
    const Options options{.policy = policy};
    const auto merged = Merge(options, {FirstNodes(2)}, resources);
    return RefusalText(options, resources, merged);
  };
  EXPECT_EQ(text(Policy::kRestricted, {kEmpty, L({P({0})})}),
            "topology policy \"restricted\": no set of NUMA nodes can serve "
            "the request for 'r0'");
  EXPECT_EQ(text(Policy::kSingleNumaNode, {L({P({0, 1})}), L({P({0})})}),
            "topology policy \"single-numa-node\": no single NUMA node can "
            "serve the request for 'r0' now");
  EXPECT_EQ(text(Policy::kRestricted, {L({N({0, 1})})}),
            "topology policy \"restricted\": no set of as few NUMA nodes as "
            "possible can serve the request for 'r0' now");
  EXPECT_EQ(text(Policy::kRestricted, {L({P({0})}), kAbsent, L({P({1})})}),
            "topology policy \"restricted\": no set of NUMA nodes is "
            "preferred for all of 'r0', 'r2'");
  EXPECT_THAT(text(Policy::kRestricted, {L({P({0})}), L({P({1})})}, true),
              HasSubstr("; the search for hints of 'r1' ended at its limit"));
  EXPECT_EQ(text(Policy::kBestEffort, {kEmpty}), "");
}

TEST(MergeTest, ATruncatedListIsNamedWhereNothingIsPreferred) {
  auto lists = ListsOf({L({P({0})}), L({P({1})})});
  lists[1].truncated = true;
  const NumaMachine machine{FirstNodes(2)};
  EXPECT_THAT(Merge({.policy = Policy::kRestricted}, machine, lists).truncated,
              ElementsAre("r1"));
  lists[1].hints = L({P({0})});
  EXPECT_THAT(Merge({.policy = Policy::kRestricted}, machine, lists).truncated,
              testing::IsEmpty());
}

// Random lists, against every combination.

TopologyHint RandomHint(Luck& luck, int nodes) {
  if (luck.Chance(5)) return {std::nullopt, luck.Chance(50)};
  // Now and then a node that the machine has not, or no node at all.
  const int width = nodes + (luck.Chance(5) ? 1 : 0);
  NumaMask mask = NumaMask(luck()) & FirstNodes(width);
  if (luck.Chance(40)) mask = mask & NumaMask(luck());
  return {mask, luck.Chance(40)};
}

std::vector<ResourceHints> RandomLists(Luck& luck, int nodes) {
  std::vector<TopologyHintList> lists(luck.Below(std::size_t{5}));
  for (TopologyHintList& list : lists) {
    if (luck.Chance(5)) continue;
    list.emplace();
    if (luck.Chance(5)) continue;
    const int size = 1 + luck.Below(7);
    for (int i = 0; i < size; ++i) list->push_back(RandomHint(luck, nodes));
  }
  return ListsOf(std::move(lists));
}

NumaMachine RandomMachine(Luck& luck, int nodes) {
  NumaMachine machine{FirstNodes(nodes)};
  // Ids with gaps, too.
  if (luck.Chance(30) && nodes > 2) {
    machine.nodes = NumaMask(machine.nodes.bits() & ~std::uint64_t{2});
  }
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < nodes; ++b) {
      machine.distances.Set(a, b, a == b ? 10 : 11 + luck.Below(3u));
    }
  }
  return machine;
}

Options RandomOptions(Luck& luck) {
  constexpr Policy kPolicies[] = {Policy::kBestEffort, Policy::kRestricted,
                                  Policy::kSingleNumaNode};
  return {.policy = luck.Pick(kPolicies), .prefer_closest = luck.Chance(50)};
}

TEST(MergeTest, FindsWhatTryingEveryCombinationFinds) {
  LiveEach({1, 5'000}, [](Luck& luck) {
    const int nodes = 1 + luck.Below(9);
    const NumaMachine machine = RandomMachine(luck, nodes);
    const auto lists = RandomLists(luck, nodes);
    const Options options = RandomOptions(luck);
    const MergedHint merged = Merge(options, machine, lists);
    ASSERT_TRUE(merged.proven);
    ASSERT_EQ(merged.hint, AllCombinations(options, machine).Merge(lists));
    ASSERT_EQ(merged.admitted,
              merged.hint.preferred || options.policy == Policy::kBestEffort);
  });
}

TEST(MergeTest, TheOrderOfProvidersAndHintsDoesNotCount) {
  LiveEach({2, 2'000}, [](Luck& luck) {
    const int nodes = luck.Chance(50) ? 1 + luck.Below(8) : 30 + luck.Below(34);
    const NumaMachine machine = RandomMachine(luck, nodes);
    auto lists = RandomLists(luck, nodes);
    const Options options = RandomOptions(luck);
    const MergedHint merged = Merge(options, machine, lists);
    std::shuffle(lists.begin(), lists.end(), luck);
    for (ResourceHints& list : lists) {
      if (list.hints)
        std::shuffle(list.hints->begin(), list.hints->end(), luck);
    }
    const MergedHint again = Merge(options, machine, lists);
    ASSERT_EQ(again.hint, merged.hint);
    ASSERT_EQ(again.admitted, merged.admitted);
  });
}

// Whether a pod is admitted never depends on the limit; and what best-effort
// gets under a limit is something that the hints have in common.
TEST(MergeTest, ALimitOfStepsWeakensNoPolicy) {
  LiveEach({3, 2'000}, [](Luck& luck) {
    const int nodes = 1 + luck.Below(9);
    const NumaMachine machine = RandomMachine(luck, nodes);
    const auto lists = RandomLists(luck, nodes);
    const Options options = RandomOptions(luck);
    const MergedHint full = Merge(options, machine, lists);
    const std::uint64_t steps = luck.Below(30u);
    const MergedHint cut = Merge(options, machine, lists, {.steps = steps});
    ASSERT_EQ(cut.admitted, full.admitted);
    ASSERT_EQ(cut.hint.preferred, full.hint.preferred);
    if (cut.proven) {
      ASSERT_EQ(cut.hint, full.hint);
    }
    if (full.hint.preferred) {
      ASSERT_TRUE(cut.proven);
      ASSERT_EQ(cut.hint, full.hint);
    }
    ASSERT_LE(cut.steps, steps + NumaMask::kMaxNodes);
  });
}

/// All sets of `size` out of `nodes`, at most `most` of them, and one of all.
TopologyHintList Sets(int nodes, int size, bool preferred, std::size_t most) {
  std::vector<TopologyHint> hints;
  std::vector<int> chosen;
  const auto visit = [&](auto& self, int from) -> void {
    if (hints.size() == most) return;
    if (static_cast<int>(chosen.size()) == size) {
      NumaMask mask;
      for (const int node : chosen) mask = mask | NumaMask::OfNode(node);
      hints.push_back({mask, preferred});
      return;
    }
    for (int node = from; node < nodes; ++node) {
      chosen.push_back(node);
      self(self, node + 1);
      chosen.pop_back();
    }
  };
  visit(visit, 0);
  hints.push_back({FirstNodes(nodes), false});
  return hints;
}

TEST(MergeTest, ManyNodesAreMergedWithProof) {
  for (const int nodes : {16, 34, 64}) {
    NumaMachine machine{FirstNodes(nodes)};
    for (int a = 0; a < nodes; ++a) {
      for (int b = 0; b < nodes; ++b) {
        machine.distances.Set(a, b, a == b ? 10 : a / 4 == b / 4 ? 11 : 20);
      }
    }
    for (const bool closest : {false, true}) {
      const Options options{.policy = Policy::kBestEffort,
                            .prefer_closest = closest};
      // One node is not preferred for the second, as others hold its devices.
      const auto lists =
          ListsOf({Sets(nodes, 1, true, 1024), Sets(nodes, 2, false, 1024),
                   Sets(nodes, 1, true, 1024), Sets(nodes, 2, true, 1024)});
      const MergedHint merged = Merge(options, machine, lists);
      EXPECT_TRUE(merged.proven) << nodes;
      EXPECT_EQ(merged.hint, N({0, 1})) << nodes;
    }
  }
}

TEST(MergeTest, AHopelessSearchEndsAtItsLimit) {
  // Each list has sets of its own size, and none of them lies in another.
  const int nodes = 40;
  std::vector<TopologyHintList> lists;
  Luck luck(7);
  for (int list = 0; list < 6; ++list) {
    lists.push_back(std::vector<TopologyHint>());
    for (int i = 0; i < 1000; ++i) {
      std::uint64_t bits = 0;
      while (NumaMask(bits).Count() < 24) {
        bits |= std::uint64_t{1} << luck.Below(nodes);
      }
      lists.back()->push_back({NumaMask(bits), false});
    }
  }
  const MergedHint merged = Merge({.policy = Policy::kBestEffort},
                                  {FirstNodes(nodes)}, ListsOf(lists));
  EXPECT_FALSE(merged.proven);
  EXPECT_TRUE(merged.admitted);
  ASSERT_TRUE(merged.hint.nodes.has_value());
  EXPECT_FALSE(merged.hint.nodes->empty());
  EXPECT_LE(merged.steps, MergeLimits{}.steps + 64);
  EXPECT_FALSE(Merge({.policy = Policy::kRestricted}, {FirstNodes(nodes)},
                     ListsOf(lists))
                   .admitted);
}

}  // namespace
}  // namespace devmgr::topology
