// SPDX-License-Identifier: Apache-2.0
#include "admission/next_step.h"

#include <gtest/gtest.h>

#include "support/state_table.h"

namespace devmgr::admission {
namespace {

constexpr char kReadme[] = "lib/admission/README.md";

TEST(NextStepTest, IsTheOneOfTheReadme) {
  const StateTable table(kReadme, "Goal");
  const auto goals = AllNamed<PodGoal>(PodGoalName);
  ASSERT_EQ(goals.size(), 6u);
  EXPECT_EQ(table.size(), goals.size());
  for (const PodGoal goal : goals) {
    EXPECT_EQ(PodStepName(NextStep(goal)), table.At(PodGoalName(goal), "Step"))
        << PodGoalName(goal);
  }
}

TEST(NextStepTest, WhatFollowsIsAsInTheReadme) {
  const StateTable table(kReadme, "Outcome");
  const auto outcomes = AllNamed<StepOutcome>(StepOutcomeName);
  ASSERT_EQ(outcomes.size(), 13u);
  EXPECT_EQ(table.size(), 2 * outcomes.size());
  for (const StepOutcome outcome : outcomes) {
    for (const bool wanted : {true, false}) {
      EXPECT_EQ(
          AfterStepName(Follow(outcome, wanted)),
          table.At(StepOutcomeName(outcome), wanted ? "Wanted" : "Unwanted"))
          << StepOutcomeName(outcome) << (wanted ? "" : ", not wanted");
    }
  }
}

}  // namespace
}  // namespace devmgr::admission
