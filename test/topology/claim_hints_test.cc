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

}  // namespace
}  // namespace devmgr::topology
