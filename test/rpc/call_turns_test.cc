// SPDX-License-Identifier: Apache-2.0
#include "rpc/call_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace devmgr::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Call {};

TEST(CallTurnsTest, CallsOfALineTakeTurnsInTheOrderTheyCame) {
  CallTurns<Call> turns(2);
  Call calls[5];
  EXPECT_TRUE(turns.Begin(1, &calls[0]));
  EXPECT_TRUE(turns.Begin(1, &calls[1]));
  EXPECT_FALSE(turns.Begin(1, &calls[2]));
  EXPECT_FALSE(turns.Begin(1, &calls[3]));
  EXPECT_EQ(turns.End(1), &calls[2]);
  // One that comes meanwhile does not go first.
  EXPECT_FALSE(turns.Begin(1, &calls[4]));
  EXPECT_EQ(turns.End(1), &calls[3]);
  EXPECT_EQ(turns.End(1), &calls[4]);
  EXPECT_EQ(turns.End(1), nullptr);
  EXPECT_EQ(turns.End(1), nullptr);
  EXPECT_TRUE(turns.Begin(1, &calls[0]));
}

TEST(CallTurnsTest, OtherLinesHaveTurnsOfTheirOwn) {
  CallTurns<Call> turns(1);
  Call calls[3];
  EXPECT_TRUE(turns.Begin(1, &calls[0]));
  EXPECT_FALSE(turns.Begin(1, &calls[1]));
  EXPECT_TRUE(turns.Begin(2, &calls[2]));
  EXPECT_EQ(turns.End(2), nullptr);
  EXPECT_EQ(turns.End(1), &calls[1]);
}

TEST(CallTurnsTest, ThoseThatWaitMayBeTakenOut) {
  CallTurns<Call> turns(1);
  Call calls[3];
  for (Call& call : calls) turns.Begin(1, &call);
  EXPECT_THAT(turns.TakeWaiting(), ElementsAre(&calls[1], &calls[2]));
  EXPECT_THAT(turns.TakeWaiting(), IsEmpty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(turns.End(1), nullptr);
}

}  // namespace
}  // namespace devmgr::rpc
