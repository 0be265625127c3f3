// SPDX-License-Identifier: Apache-2.0
#include "topology/claim_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace devmgr::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

SliceDevice With(DeviceAttribute attribute) {
  SliceDevice device;
  device.attributes.emplace(SharedText(kNumaNodeAttribute),
                            std::move(attribute));
  return device;
}

TEST(ClaimHintsTest, TheNodesOfADeviceAreANumberOrAList) {
  EXPECT_THAT(NumaNodesOf(With(std::int64_t{3})), ElementsAre(3));
  // The device's own node first, then its neighbours.
  EXPECT_THAT(NumaNodesOf(With(RareVector<std::int64_t>({2, 0, 1, 2}))),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(NumaNodesOf({}), IsEmpty());
}

TEST(ClaimHintsTest, AnAttributeThatIsNoNodeIsNone) {
  EXPECT_THAT(NumaNodesOf(With(std::int64_t{-1})), IsEmpty());
  EXPECT_THAT(NumaNodesOf(With(std::int64_t{64})), IsEmpty());
  EXPECT_THAT(NumaNodesOf(With(RareVector<std::int64_t>({0, -1}))), IsEmpty());
  EXPECT_THAT(NumaNodesOf(With(true)), IsEmpty());
  EXPECT_THAT(NumaNodesOf(With(SharedText("0"))), IsEmpty());
  EXPECT_THAT(NumaNodesOf(With(DeviceVersion{SharedText("1.0.0")})), IsEmpty());
}

TEST(ClaimHintsTest, FreeDevicesServeAndHeldOnesCountForThePreference) {
  const Hints hints = HintsOfClaim({{.nodes = {0}, .free = true},
                                    {.nodes = {0}},
                                    {.nodes = {1}, .free = true}},
                                   2, {0, 1});
  EXPECT_THAT(hints.hints, Optional(ElementsAre(Hint{{0, 1}, false})));
  EXPECT_THAT(HintsOfClaim({{.nodes = {0}, .free = true}}, 2, {0, 1}).hints,
              Optional(IsEmpty()));
}

TEST(ClaimHintsTest, AnAllocatedClaimHasTheHintsOfWhatItHolds) {
  const Hints hints = HintsOfClaim({{.nodes = {0}, .free = true},
                                    {.nodes = {1}, .allocated = true},
                                    {.nodes = {2}, .free = true}},
                                   7, {0, 1, 2});
  EXPECT_THAT(hints.hints, Optional(ElementsAre(
                               Hint{{1}, true}, Hint{{0, 1}, false},
                               Hint{{1, 2}, false}, Hint{{0, 1, 2}, false})));
}

TEST(ClaimHintsTest, DevicesWithoutNodesAreNoOpinion) {
  EXPECT_EQ(HintsOfClaim({{.free = true}, {.free = true}}, 1, {0, 1}).hints,
            std::nullopt);
  EXPECT_EQ(HintsOfClaim({{.nodes = {0}, .free = true}}, 0, {0, 1}).hints,
            std::nullopt);
}

/// Claims for `count` devices; per node so many are free, and so many there.
struct FreeOnNodes {
  std::vector<int> free;
  std::vector<int> all;
  int count = 1;
  std::vector<NumaMask> tried;

  static absl::StatusOr<ClaimFit> Fit(const std::vector<int>& on,
                                      NumaMask nodes, int count) {
    int sum = 0;
    for (const auto node : nodes.Nodes()) sum += on[node];
    return sum >= count ? ClaimFit::kOnNodes : ClaimFit::kNone;
  }
  ClaimChoice Choice() {
    return {[this](NumaMask nodes) {
              tried.push_back(nodes);
              return Fit(free, nodes, count);
            },
            [this](NumaMask nodes) { return Fit(all, nodes, count); },
            NumaMask((std::uint64_t{1} << all.size()) - 1)};
  }
};

TEST(ClaimChoiceTest, TheSmallestSetsThatSufficeArePreferred) {
  FreeOnNodes machine{{1, 2, 2}, {2, 2, 2}, 2, {}};
  const auto hints = HintsOfChoice(machine.Choice());
  ASSERT_TRUE(hints.ok()) << hints.status();
  EXPECT_THAT(hints->hints,
              Optional(ElementsAre(Hint{{1}, true}, Hint{{2}, true},
                                   Hint{{0, 1, 2}, false})));
  // Sets of two nodes are not looked at.
  EXPECT_THAT(machine.tried,
              ElementsAre(NumaMask(1), NumaMask(2), NumaMask(4), NumaMask(7)));
}

TEST(ClaimChoiceTest, WhatWouldDoOnLessIfNothingWereHeldIsNotPreferred) {
  FreeOnNodes machine{{1, 1, 0}, {2, 2, 2}, 2, {}};
  const auto hints = HintsOfChoice(machine.Choice());
  ASSERT_TRUE(hints.ok());
  EXPECT_THAT(hints->hints, Optional(ElementsAre(Hint{{0, 1}, false},
                                                 Hint{{0, 1, 2}, false})));
  // Two nodes are the least here, so they are preferred.
  FreeOnNodes small{{1, 0, 1}, {1, 1, 1}, 2, {}};
  EXPECT_THAT(
      HintsOfChoice(small.Choice())->hints,
      Optional(ElementsAre(Hint{{0, 2}, true}, Hint{{0, 1, 2}, false})));
}

TEST(ClaimChoiceTest, SetsOfOneSizeAreTriedByTheirNumber) {
  FreeOnNodes machine{{1, 1, 1, 1}, {1, 1, 1, 1}, 2, {}};
  EXPECT_THAT(HintsOfChoice(machine.Choice())->hints,
              Optional(ElementsAre(Hint{{0, 1}, true}, Hint{{0, 2}, true},
                                   Hint{{1, 2}, true}, Hint{{0, 3}, true},
                                   Hint{{1, 3}, true}, Hint{{2, 3}, true},
                                   Hint{{0, 1, 2, 3}, false})));
}

TEST(ClaimChoiceTest, DevicesThatAreNowhereAreNoOpinionAndNoneAnEmptyList) {
  const auto answer = [](ClaimFit fit) {
    return [fit](NumaMask) -> absl::StatusOr<ClaimFit> { return fit; };
  };
  const auto nowhere = answer(ClaimFit::kNowhere);
  EXPECT_EQ(HintsOfChoice({nowhere, nowhere, NumaMask(3)})->hints,
            std::nullopt);
  const auto none = answer(ClaimFit::kNone);
  EXPECT_THAT(HintsOfChoice({none, none, NumaMask(3)})->hints,
              Optional(IsEmpty()));
  EXPECT_EQ(HintsOfChoice({none, none, NumaMask()})->hints, std::nullopt);
}

TEST(ClaimChoiceTest, EndsAtItsLimitAndWithAnError) {
  FreeOnNodes machine{std::vector<int>(20, 0), std::vector<int>(20, 0), 1, {}};
  const auto cut = HintsOfChoice(machine.Choice(), /*tries=*/10);
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->truncated);
  EXPECT_LE(machine.tried.size(), 11);
  const auto fails = [](NumaMask) -> absl::StatusOr<ClaimFit> {
    return absl::UnavailableError("given up");
  };
  EXPECT_EQ(HintsOfChoice({fails, fails, NumaMask(3)}).status(),
            absl::UnavailableError("given up"));
}

}  // namespace
}  // namespace devmgr::topology
