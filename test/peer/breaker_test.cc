// SPDX-License-Identifier: Apache-2.0
#include "peer/breaker.h"

#include <devmgr/status_types.h>
#include <gtest/gtest.h>

#include "support/state_table.h"

namespace devmgr::peer {
namespace {

using std::chrono::milliseconds;

TEST(BreakerTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table("lib/peer/README.md", "Breaker");
  const auto states = AllNamed<BreakerState>(BreakerStateName);
  const auto events = AllNamed<BreakerEvent>(BreakerEventName);
  ASSERT_EQ(states.size(), 3u);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(table.size(), states.size() * events.size());
  for (const BreakerState state : states) {
    for (const BreakerEvent event : events) {
      EXPECT_EQ(BreakerStateName(Next(state, event)),
                table.At(BreakerStateName(state), BreakerEventName(event)))
          << BreakerStateName(state) << " x " << BreakerEventName(event);
    }
  }
}

TEST(BreakerTest, StatesAreShownByTheirNames) {
  for (const BreakerState state : AllNamed<BreakerState>(BreakerStateName)) {
    EXPECT_EQ(PluginBreakerName(PublicOf(state)), BreakerStateName(state));
  }
}

class BreakerCallsTest : public testing::Test {
 protected:
  void Silent(int times) {
    for (int i = 0; i < times; ++i) breaker_.OnSilent();
  }
  Breaker breaker_{BreakerOptions{3, milliseconds(10), milliseconds(30)}};
};

TEST_F(BreakerCallsTest, OpensOverSilenceInARowOnly) {
  Silent(2);
  breaker_.OnAnswered();
  Silent(2);
  EXPECT_TRUE(breaker_.TryCall());
  breaker_.OnNoVerdict();
  Silent(1);
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  EXPECT_FALSE(breaker_.TryCall());
}

TEST_F(BreakerCallsTest, LetsOneTrialOut) {
  Silent(3);
  breaker_.OnCooledDown();
  EXPECT_EQ(breaker_.state(), BreakerState::kHalfOpen);
  EXPECT_TRUE(breaker_.TryCall());
  EXPECT_FALSE(breaker_.TryCall());
  breaker_.OnNoVerdict();  // It went with its connection.
  EXPECT_TRUE(breaker_.TryCall());
  breaker_.OnAnswered();
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
  EXPECT_TRUE(breaker_.TryCall());
  EXPECT_TRUE(breaker_.TryCall());
}

TEST_F(BreakerCallsTest, PausesTwiceAsLongWithEachTrialThatFails) {
  Silent(3);
  for (const int pause : {10, 20, 30, 30}) {
    EXPECT_EQ(breaker_.pause(), milliseconds(pause));
    Silent(2);  // Late ends of calls from before.
    EXPECT_EQ(breaker_.pause(), milliseconds(pause));
    breaker_.OnCooledDown();
    EXPECT_TRUE(breaker_.TryCall());
    Silent(1);
    EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  }
  breaker_.OnAnswered();
  Silent(3);
  EXPECT_EQ(breaker_.pause(), milliseconds(10));
}

// A probe shows that a peer is there, not that it does its work.
TEST_F(BreakerCallsTest, AfterAProbeTheNextSilenceOpensItAtOnceAndForLonger) {
  Silent(3);
  breaker_.OnCooledDown();
  EXPECT_TRUE(breaker_.TryCall());
  breaker_.OnProbed();
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
  EXPECT_TRUE(breaker_.TryCall());
  Silent(1);
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  EXPECT_EQ(breaker_.pause(), milliseconds(20));
  breaker_.OnCooledDown();
  breaker_.OnProbed();
  breaker_.OnAnswered();
  Silent(2);
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
  breaker_.OnProbed();  // Says nothing that was not known.
  Silent(1);
  EXPECT_EQ(breaker_.pause(), milliseconds(10));
}

}  // namespace
}  // namespace devmgr::peer
