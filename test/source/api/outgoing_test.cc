// SPDX-License-Identifier: Apache-2.0
#include "source/api/outgoing.h"

#include <gtest/gtest.h>

#include "source/api/request_rate.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

WriteOutcome Outcome(int code, const std::string& reason = "") {
  ApiStatus status;
  status.code = code;
  status.reason = reason;
  return OutcomeOf(status);
}

TEST(WriteOutcome, FollowsFromTheCodeAndTheReason) {
  EXPECT_EQ(Outcome(201), WriteOutcome::kDone);
  EXPECT_EQ(Outcome(404), WriteOutcome::kMissing);
  EXPECT_EQ(Outcome(409, "AlreadyExists"), WriteOutcome::kExists);
  EXPECT_EQ(Outcome(409, "Conflict"), WriteOutcome::kConflict);
  EXPECT_EQ(Outcome(422), WriteOutcome::kInvalid);
  EXPECT_EQ(Outcome(401), WriteOutcome::kUnauthorized);
  EXPECT_EQ(Outcome(429), WriteOutcome::kThrottled);
  EXPECT_EQ(Outcome(403), WriteOutcome::kRefused);
  EXPECT_EQ(Outcome(503), WriteOutcome::kFailed);
  EXPECT_EQ(Outcome(302), WriteOutcome::kFailed);
}

class WriteRetryTest : public ::testing::Test {
 protected:
  milliseconds After(WriteOutcome outcome,
                     std::optional<seconds> retry_after = {}) {
    return retry.After(now, outcome, retry_after);
  }
  WriteRetry::TimePoint now{};
  WriteRetry retry{[] { return 0.0; }};
};

TEST_F(WriteRetryTest, ConflictsAreTriedAgainQuicklyFiveTimes) {
  for (int i = 1; i < WriteRetry::kQuickTries; ++i) {
    EXPECT_LE(After(WriteOutcome::kConflict), milliseconds(11));
  }
  EXPECT_EQ(After(WriteOutcome::kConflict), milliseconds(800));
  retry.OnDone(now);
  EXPECT_LE(After(WriteOutcome::kConflict), milliseconds(11));
}

TEST_F(WriteRetryTest, TheFirstRefusalOfCredentialsIsFollowedAtOnce) {
  EXPECT_EQ(After(WriteOutcome::kUnauthorized), milliseconds(0));
  EXPECT_EQ(After(WriteOutcome::kUnauthorized), milliseconds(800));
}

TEST_F(WriteRetryTest, AServerThatAsksForTimeGetsIt) {
  EXPECT_EQ(After(WriteOutcome::kThrottled, seconds(7)), seconds(7));
  EXPECT_EQ(After(WriteOutcome::kThrottled), milliseconds(1600));
}

TEST_F(WriteRetryTest, AnAdministratorHasFiveMinutes) {
  milliseconds longest{0};
  for (int i = 0; i < 20; ++i) {
    longest = std::max(longest, After(WriteOutcome::kRefused));
  }
  EXPECT_EQ(longest, minutes(5));
  EXPECT_EQ(After(WriteOutcome::kFailed), milliseconds(800));
}

TEST(RequestRate, AllowsABurstAndThenSoManyInASecond) {
  RequestRate rate(2, 3);
  RequestRate::TimePoint now{};
  EXPECT_TRUE(rate.Take(now) && rate.Take(now) && rate.Take(now));
  EXPECT_FALSE(rate.Take(now));
  EXPECT_EQ(rate.WakeAt(now), now + milliseconds(500));
  now += milliseconds(500);
  EXPECT_TRUE(rate.Take(now));
  EXPECT_FALSE(rate.Take(now));
  now += minutes(1);
  EXPECT_TRUE(rate.IsFull(now));
  EXPECT_TRUE(rate.Take(now) && rate.Take(now) && rate.Take(now));
  EXPECT_FALSE(rate.Take(now));
}

}  // namespace
}  // namespace devmgr::apiserver
