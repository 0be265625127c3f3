// SPDX-License-Identifier: Apache-2.0
#include "model/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace devmgr::model {
namespace {

using Numbers = std::vector<int>;

bool Holds(const Numbers& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

TEST(ShrinkTest, LeavesWhatTheFailureNeeds) {
  Numbers numbers(1'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  int tries = 0;
  const Numbers left = Shrink<int>(numbers, [&](const Numbers& some) {
    ++tries;
    return Holds(some, 3) && Holds(some, 500) && Holds(some, 999);
  });
  EXPECT_THAT(left, testing::ElementsAre(3, 500, 999));
  EXPECT_LT(tries, 200);
}

// Parts that must be left out together, or one after the other.
TEST(ShrinkTest, TriesAgainWhatBecomesSuperfluous) {
  const Numbers left =
      Shrink<int>({1, 2, 3, 4, 5, 6, 7}, [](const Numbers& some) {
        if (!Holds(some, 7)) return false;
        return !Holds(some, 5) || Holds(some, 2);  // 5 needs 2
      });
  EXPECT_THAT(left, testing::ElementsAre(7));
}

TEST(ShrinkTest, MayLeaveNothing) {
  EXPECT_THAT(Shrink<int>({1, 2, 3}, [](const Numbers&) { return true; }),
              testing::IsEmpty());
}

}  // namespace
}  // namespace devmgr::model
