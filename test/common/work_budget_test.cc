// SPDX-License-Identifier: Apache-2.0
#include "common/work_budget.h"

#include <gtest/gtest.h>

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkBudgetTest : public testing::Test {
 protected:
  milliseconds Spend(milliseconds work) {
    return std::chrono::duration_cast<milliseconds>(budget_.Spend(now_, work));
  }

  WorkBudget budget_{{milliseconds(100), 20}};
  WorkBudget::TimePoint now_{seconds(1'000)};
};

TEST_F(WorkBudgetTest, ABurstIsNotHeldUp) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Spend(milliseconds(10)).count(), 0);
  EXPECT_EQ(Spend(milliseconds(1)).count(), 5);
}

TEST_F(WorkBudgetTest, OneThatWaitsAsItIsToldGetsItsShare) {
  Spend(milliseconds(100));
  milliseconds waited{0};
  for (int i = 0; i < 100; ++i) {
    const milliseconds wait = Spend(milliseconds(2));
    EXPECT_EQ(wait.count(), 10);
    now_ += wait;
    waited += wait;
  }
  EXPECT_EQ(waited.count(), 1'000);  // For 200 ms of work.
}

TEST_F(WorkBudgetTest, QuietTimeRefillsIt) {
  Spend(milliseconds(100));
  now_ += milliseconds(250);  // Half of it.
  EXPECT_EQ(Spend(milliseconds(50)).count(), 0);
  EXPECT_EQ(Spend(milliseconds(1)).count(), 5);
  now_ += seconds(3'600);  // And not more than all of it.
  EXPECT_EQ(Spend(milliseconds(100)).count(), 0);
  EXPECT_EQ(Spend(milliseconds(1)).count(), 5);
}

}  // namespace
}  // namespace devmgr
