// SPDX-License-Identifier: Apache-2.0
#include "topology/mask_order.h"

#include <gtest/gtest.h>

#include "support/random_lives.h"
#include "topology/masks.h"

namespace devmgr::topology {
namespace {

TEST(MaskOrderTest, NoPartOfAMaskIsBetterThanItsBound) {
  LiveEach({1, 500}, [](Luck& luck) {
    const int nodes = 1 + luck.Below(8);
    NumaDistances distances;
    for (int a = 0; a < nodes; ++a) {
      for (int b = 0; b < nodes; ++b) {
        distances.Set(a, b, 10 + luck.Below(20u));
      }
    }
    const MaskOrder order(FirstNodes(nodes),
                          luck.Chance(50) ? &distances : nullptr);
    const NumaMask mask(1 + luck.Below((1u << nodes) - 1));
    for (std::uint64_t part = 1; part <= mask.bits(); ++part) {
      if (!mask.ContainsAll(NumaMask(part))) continue;
      const int count = NumaMask(part).Count();
      ASSERT_LE(order.Bound(mask, count), order.Of(NumaMask(part)));
    }
    ASSERT_EQ(order.Bound(mask, mask.Count()), order.Of(mask));
  });
}

}  // namespace
}  // namespace devmgr::topology
