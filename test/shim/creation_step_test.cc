// SPDX-License-Identifier: Apache-2.0
#include "shim/creation_step.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/state_table.h"

namespace devmgr::shim {
namespace {

constexpr char kReadme[] = "lib/shim/README.md";

/// `Wait`, or `Wait, then Fail` where patience makes a difference.
std::string StepText(CreationState state, CreationAnswer answer,
                     UnknownSandbox unknown) {
  const std::string patient(
      CreationStepName(NextStep(state, answer, true, unknown)));
  const std::string late(
      CreationStepName(NextStep(state, answer, false, unknown)));
  return patient == late ? patient : patient + ", then " + late;
}

/// How the README calls the rows of an answer, by the policy that they are of.
std::map<std::string, UnknownSandbox> RowsOf(CreationAnswer answer) {
  const std::string name(CreationAnswerName(answer));
  if (answer != CreationAnswer::kUnknownPod) {
    return {{name, UnknownSandbox::kWait}};
  }
  return {{name + ", wait", UnknownSandbox::kWait},
          {name + ", pass", UnknownSandbox::kPass},
          {name + ", refuse", UnknownSandbox::kRefuse}};
}

TEST(CreationStepTest, IsTheOneOfTheReadme) {
  const StateTable table(kReadme, "Answer");
  const auto states = AllNamed<CreationState>(CreationStateName);
  const auto answers = AllNamed<CreationAnswer>(CreationAnswerName);
  ASSERT_EQ(states.size(), 4u);
  ASSERT_EQ(answers.size(), 6u);
  EXPECT_EQ(table.size(), 8 * states.size());
  for (const CreationAnswer answer : answers) {
    for (const auto& [row, unknown] : RowsOf(answer)) {
      for (const CreationState state : states) {
        EXPECT_EQ(StepText(state, answer, unknown),
                  table.At(row, CreationStateName(state)))
            << row << " x " << CreationStateName(state);
      }
    }
  }
}

// What the policy for unknown pods is changes nothing for others.
TEST(CreationStepTest, ThePolicyIsForUnknownPods) {
  for (const auto answer : AllNamed<CreationAnswer>(CreationAnswerName)) {
    if (answer == CreationAnswer::kUnknownPod) continue;
    for (const auto state : AllNamed<CreationState>(CreationStateName)) {
      const std::string text = StepText(state, answer, UnknownSandbox::kWait);
      EXPECT_EQ(StepText(state, answer, UnknownSandbox::kPass), text);
      EXPECT_EQ(StepText(state, answer, UnknownSandbox::kRefuse), text);
    }
  }
}

TEST(CreationStepTest, AStateRemembersWhatWasDone) {
  using enum CreationState;
  EXPECT_EQ(After(kAsking, CreationStep::kWait), kAsking);
  EXPECT_EQ(After(kAsking, CreationStep::kTakeBack), kTookBack);
  EXPECT_EQ(After(kAsking, CreationStep::kAskForSpecs), kAwaitsSpecs);
  EXPECT_EQ(After(kTookBack, CreationStep::kAskForSpecs),
            kTookBackAwaitingSpecs);
  EXPECT_EQ(After(kAwaitsSpecs, CreationStep::kTakeBack),
            kTookBackAwaitingSpecs);
  EXPECT_EQ(After(kTookBackAwaitingSpecs, CreationStep::kWait),
            kTookBackAwaitingSpecs);
}

}  // namespace
}  // namespace devmgr::shim
