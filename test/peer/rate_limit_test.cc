// SPDX-License-Identifier: Apache-2.0
#include "peer/rate_limit.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::peer {
namespace {

using std::chrono::milliseconds;

class RateLimitTest : public testing::Test {
 protected:
  RateLimit::TimePoint now_ = RateLimit::TimePoint(std::chrono::hours(1));
};

TEST_F(RateLimitTest, LetsABurstThroughAndThenOneInEachInterval) {
  RateLimit limit({3, milliseconds(100)});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Take(now_)) << i;
  EXPECT_FALSE(limit.Take(now_));
  EXPECT_FALSE(limit.Take(now_ + milliseconds(99)));
  EXPECT_TRUE(limit.Take(now_ + milliseconds(100)));
  EXPECT_FALSE(limit.Take(now_ + milliseconds(100)));
  // After a quiet time it is as at first.
  now_ += milliseconds(10'000);
  EXPECT_TRUE(limit.IsBlank(now_));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Take(now_)) << i;
  EXPECT_FALSE(limit.Take(now_));
}

TEST_F(RateLimitTest, WhatIsRefusedDoesNotCount) {
  RateLimit limit({1, milliseconds(100)});
  EXPECT_TRUE(limit.Take(now_));
  for (int i = 0; i < 99; ++i)
    EXPECT_FALSE(limit.Take(now_ += milliseconds(1)));
  EXPECT_TRUE(limit.Take(now_ += milliseconds(1)));
}

TEST_F(RateLimitTest, NamesHaveTheirOwnAndOneTogether) {
  RateLimits limits({2, milliseconds(1'000)}, {5, milliseconds(100)});
  EXPECT_TRUE(limits.Take("a", now_));
  EXPECT_TRUE(limits.Take("a", now_));
  EXPECT_FALSE(limits.Take("a", now_));
  for (const char* name : {"b", "c", "d"}) {
    EXPECT_TRUE(limits.Take(name, now_)) << name;
  }
  EXPECT_FALSE(limits.Take("e", now_));
  EXPECT_TRUE(limits.Take("e", now_ + milliseconds(100)));
}

TEST_F(RateLimitTest, RemembersNoMoreNamesThanItHasTo) {
  RateLimits limits({2, milliseconds(1'000)}, {5, milliseconds(100)});
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_TRUE(limits.Take(std::to_string(i), now_));
    now_ += milliseconds(100);
  }
  EXPECT_LE(limits.size(), 11u);
}

}  // namespace
}  // namespace devmgr::peer
