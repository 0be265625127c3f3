// SPDX-License-Identifier: Apache-2.0
#include "device/probation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace devmgr::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Probation::Rules kTenSeconds{10'000, false};

TEST(ProbationTest, ADeviceIsOfferedOnceItHasWorkedForLongEnough) {
  Probation probation(kTenSeconds);
  EXPECT_FALSE(probation.Note("0", Health::kHealthy, 0));
  EXPECT_TRUE(probation.Note("0", Health::kUnhealthy, 1'000));
  EXPECT_FALSE(probation.Note("0", Health::kUnhealthy, 2'000));
  EXPECT_EQ(probation.NextEnd(), std::nullopt);
  EXPECT_FALSE(probation.Note("0", Health::kHealthy, 3'000));
  EXPECT_TRUE(probation.Withholds("0"));
  // Reported once more, it does not begin anew.
  EXPECT_FALSE(probation.Note("0", Health::kHealthy, 4'000));
  EXPECT_EQ(probation.NextEnd(), 13'000);
  EXPECT_THAT(probation.End(12'999), IsEmpty());
  EXPECT_THAT(probation.End(13'000), ElementsAre("0"));
  EXPECT_FALSE(probation.Withholds("0"));
}

TEST(ProbationTest, WhatFailsMeanwhileBeginsAnew) {
  Probation probation(kTenSeconds);
  probation.Note("0", Health::kUnhealthy, 0);
  probation.Note("0", Health::kHealthy, 0);
  probation.Note("0", Health::kUnhealthy, 9'000);
  EXPECT_THAT(probation.End(60'000), IsEmpty());
  // That its plugin is gone says nothing for it.
  probation.Note("0", Health::kUnknown, 61'000);
  EXPECT_TRUE(probation.Withholds("0"));
  probation.Note("0", Health::kHealthy, 62'000);
  EXPECT_EQ(probation.NextEnd(), 72'000);
}

TEST(ProbationTest, UnknownIsNotUnhealthyUnlessTheRulesSaySo) {
  Probation probation(kTenSeconds);
  EXPECT_FALSE(probation.Note("0", Health::kUnknown, 0));
  EXPECT_FALSE(probation.Withholds("0"));
  Probation strict({10'000, true});
  EXPECT_TRUE(strict.Note("0", Health::kUnknown, 0));
  EXPECT_TRUE(strict.Withholds("0"));
}

TEST(ProbationTest, ARecheckOffersWhatWorks) {
  Probation probation(kTenSeconds);
  for (const char* device : {"0", "1", "2"}) {
    probation.Note(device, Health::kUnhealthy, 0);
  }
  probation.Note("0", Health::kHealthy, 0);
  probation.Note("1", Health::kHealthy, 0);
  EXPECT_THAT(probation.Recheck("2"), IsEmpty());
  EXPECT_THAT(probation.Recheck("1"), ElementsAre("1"));
  EXPECT_THAT(probation.Recheck(""), ElementsAre("0"));
  EXPECT_TRUE(probation.Withholds("2"));
}

TEST(ProbationTest, WithoutATimeThereIsNone) {
  Probation probation;
  EXPECT_FALSE(probation.Note("0", Health::kUnhealthy, 0));
  EXPECT_FALSE(probation.Withholds("0"));
}

}  // namespace
}  // namespace devmgr::device
