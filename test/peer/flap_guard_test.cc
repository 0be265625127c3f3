// SPDX-License-Identifier: Apache-2.0
#include "peer/flap_guard.h"

#include <gtest/gtest.h>

namespace devmgr::peer {
namespace {

using std::chrono::seconds;

class FlapGuardTest : public testing::Test {
 protected:
  void LoseAfter(int s) { guard_.OnLost(now_ += seconds(s)); }
  /// Seconds of quarantine left.
  long Left() const {
    const auto until = guard_.QuarantinedUntil(now_);
    return until ? std::chrono::duration_cast<seconds>(*until - now_).count()
                 : 0;
  }

  FlapGuard guard_{FlapOptions{3, seconds(60), seconds(60), seconds(200)}};
  FlapGuard::TimePoint now_{seconds(1'000'000)};
};

TEST_F(FlapGuardTest, TrustsWhoComesAndGoesNowAndThen) {
  EXPECT_TRUE(guard_.IsBlank(now_));
  for (int i = 0; i < 10; ++i) {
    LoseAfter(31);
    EXPECT_EQ(Left(), 0) << i;
  }
  EXPECT_FALSE(guard_.IsBlank(now_));
  now_ += seconds(61);
  EXPECT_TRUE(guard_.IsBlank(now_));
}

TEST_F(FlapGuardTest, PutsWhoDoesSoTooOftenIntoQuarantine) {
  LoseAfter(0);
  LoseAfter(30);
  EXPECT_EQ(Left(), 0);
  LoseAfter(30);
  EXPECT_EQ(Left(), 60);
  now_ += seconds(59);
  EXPECT_EQ(Left(), 1);
  now_ += seconds(1);
  EXPECT_EQ(Left(), 0);
}

TEST_F(FlapGuardTest, QuarantineGrowsWithEachLossInIt) {
  LoseAfter(0);
  LoseAfter(1);
  LoseAfter(1);
  LoseAfter(50);
  EXPECT_EQ(Left(), 120);
  LoseAfter(110);  // Not three within a minute, but in quarantine.
  EXPECT_EQ(Left(), 200);
  LoseAfter(199);
  EXPECT_EQ(Left(), 200);
}

TEST_F(FlapGuardTest, ForgetsAfterALongQuietTime) {
  for (int i = 0; i < 5; ++i) LoseAfter(1);
  EXPECT_EQ(Left(), 200);
  now_ += seconds(200 + 200);
  EXPECT_FALSE(guard_.IsBlank(now_));
  now_ += seconds(1);
  EXPECT_TRUE(guard_.IsBlank(now_));
  LoseAfter(0);
  LoseAfter(0);
  EXPECT_EQ(Left(), 0);
  LoseAfter(0);
  EXPECT_EQ(Left(), 60);
}

TEST(FlapGuardsTest, AreKeptWhileTheyAreUsedOrRemember) {
  const FlapGuard::TimePoint now{seconds(1'000'000)};
  FlapGuards guards(FlapOptions{1, seconds(60), seconds(60), seconds(200)});
  const auto used = guards.Of("a", "/a", now);
  guards.Of("b", "/b", now)->OnLost(now);
  guards.Of("c", "/c", now);
  EXPECT_EQ(guards.Of("a", "/a", now), used);
  EXPECT_EQ(guards.size(), 2u);
  EXPECT_TRUE(guards.Of("b", "/b", now)->QuarantinedUntil(now).has_value());
  EXPECT_FALSE(guards.Of("b", "/a", now)->QuarantinedUntil(now).has_value());
  guards.Of("d", "/d", now + seconds(500));
  EXPECT_EQ(guards.size(), 2u);
}

}  // namespace
}  // namespace devmgr::peer
