// SPDX-License-Identifier: Apache-2.0
#include "claim/call_stage.h"

#include <gtest/gtest.h>

#include <string>

#include "support/state_table.h"

namespace devmgr::claim {
namespace {

constexpr char kReadme[] = "lib/claim/README.md";

TEST(CallStageTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table(kReadme, "Stage");
  const auto stages = AllNamed<CallStage>(CallStageName);
  const auto events = AllNamed<CallEvent>(CallEventName);
  ASSERT_EQ(stages.size(), 5u);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(table.size(), stages.size() * events.size());
  for (const CallStage stage : stages) {
    for (const CallEvent event : events) {
      EXPECT_EQ(CallStageName(Next(stage, event)),
                table.At(CallStageName(stage), CallEventName(event)))
          << CallStageName(stage) << " x " << CallEventName(event);
    }
  }
}

// A call is settled once it was made.
TEST(CallStageTest, WhatFollowsIsAsInTheReadme) {
  const StateTable table(kReadme, "Settled");
  const auto all_owed = AllNamed<StillOwed>(StillOwedName);
  ASSERT_EQ(all_owed.size(), 3u);
  EXPECT_EQ(table.size(), 6 * all_owed.size());
  for (const CallStage stage :
       {CallStage::kAsked, CallStage::kAskAgain, CallStage::kForgotten}) {
    for (const bool failed : {false, true}) {
      const std::string row = std::string(CallStageName(stage)) +
                              (failed ? ", failed" : ", succeeded");
      for (const StillOwed owed : all_owed) {
        EXPECT_EQ(AfterCallName(WhenSettled(stage, owed, failed)),
                  table.At(row, StillOwedName(owed)))
            << row << " x " << StillOwedName(owed);
      }
    }
  }
}

}  // namespace
}  // namespace devmgr::claim
