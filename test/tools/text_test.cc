// SPDX-License-Identifier: Apache-2.0
#include "devmgrctl/text.h"

#include <devmgr/duration.h>
#include <gtest/gtest.h>

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;

TEST(ParsePointTest, TakesNumbersTimesAndDurationsAgo) {
  const WallTime now(std::chrono::hours(1'000));
  const auto at = [&](const char* text) { return ParsePoint(text, now); };
  const auto time = [](std::int64_t unix_ms) {
    return LedgerPoint(WallTime(milliseconds(unix_ms)));
  };
  EXPECT_EQ(at("0"), LedgerPoint(std::uint64_t{0}));
  EXPECT_EQ(at("18446744073709551615"), LedgerPoint(~std::uint64_t{0}));
  EXPECT_EQ(at("10m"), LedgerPoint(now - std::chrono::minutes(10)));
  EXPECT_EQ(at("0s"), LedgerPoint(now));
  EXPECT_EQ(at("1970-01-01T00:00:00Z"), time(0));
  EXPECT_EQ(at("2026-11-21T10:11:12Z"), time(1'795'255'872'000));
  EXPECT_EQ(at("2026-11-21T10:11:12.345678Z"), time(1'795'255'872'345));
  EXPECT_EQ(at("2026-11-21T12:11:12.5+02:00"), time(1'795'255'872'500));
  EXPECT_EQ(at("2026-11-21T08:41:12-01:30"), time(1'795'255'872'000));
  EXPECT_EQ(at("2024-02-29T00:00:00z"), time(1'709'164'800'000));
}

TEST(ParsePointTest, RefusesAllElse) {
  for (const char* text : {"",
                           "-1",
                           "yesterday",
                           "18446744073709551616",
                           "1m x",
                           "2026-11-21",
                           "2026-11-21T10:11:12",
                           "2026-11-21 10:11:12Z",
                           "2026-13-21T10:11:12Z",
                           "2025-02-29T10:11:12Z",
                           "2026-11-21T24:00:00Z",
                           "2026-11-21T10:60:00Z",
                           "2026-11-21T10:11:61Z",
                           "26-11-21T10:11:12Z",
                           "2026-11-21T10:11:12.Z",
                           "2026-11-21T10:11:12+2:00",
                           "2026-11-21T10:11:12+02:00Z",
                           "2026-11-21T10:11:12+24:00",
                           "9999-01-01T00:00:00Z",
                           "1969-12-31T23:59:59Z",
                           "2026-1a-21T10:11:12Z"}) {
    EXPECT_EQ(ParsePoint(text, WallTime()), std::nullopt) << text;
  }
}

TEST(ParsePointTest, ReadsWhatTimeTextWrites) {
  const WallTime time(milliseconds(1'795'255'872'345));
  EXPECT_EQ(ParsePoint(TimeText(time), WallTime()), LedgerPoint(time));
}

TEST(DurationTextTest, IsReadableAgain) {
  for (const char* text :
       {"20s", "500ms", "2m", "1h30m", "1.5s", "0s", "1h", "1m0.25s"}) {
    const auto duration = ParseDuration(text);
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(ParseDuration(DurationText(*duration)), duration) << text;
  }
  EXPECT_EQ(DurationText(milliseconds(20'000)), "20s");
  EXPECT_EQ(DurationText(milliseconds(90'000)), "1m30s");
  EXPECT_EQ(DurationText(milliseconds(1'500)), "1.5s");
  EXPECT_EQ(DurationText(milliseconds(0)), "0s");
}

TEST(AgeTextTest, GrowsCoarser) {
  EXPECT_EQ(AgeText(std::chrono::seconds(-5)), "0s");
  EXPECT_EQ(AgeText(std::chrono::seconds(59)), "59s");
  EXPECT_EQ(AgeText(std::chrono::minutes(5)), "5m");
  EXPECT_EQ(AgeText(std::chrono::minutes(192)), "3h12m");
  EXPECT_EQ(AgeText(std::chrono::minutes(180)), "3h");
  EXPECT_EQ(AgeText(std::chrono::hours(49)), "2d");
}

TEST(TimeTextTest, IsRfc3339) {
  EXPECT_EQ(TimeText(WallTime(milliseconds(1'700'000'000'123))),
            "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(TimeText(WallTime()), "");
}

TEST(NaturalLessTest, NumbersCompareAsNumbers) {
  EXPECT_TRUE(NaturalLess("gpu2", "gpu10"));
  EXPECT_FALSE(NaturalLess("gpu10", "gpu2"));
  EXPECT_TRUE(NaturalLess("a", "b"));
  EXPECT_TRUE(NaturalLess("gpu", "gpu1"));
  EXPECT_TRUE(NaturalLess("gpu1-a", "gpu1-b"));
  EXPECT_FALSE(NaturalLess("gpu1", "gpu1"));
  // Equal numbers in other spellings are still two names, in a fixed order.
  EXPECT_NE(NaturalLess("gpu02", "gpu2"), NaturalLess("gpu2", "gpu02"));
  EXPECT_TRUE(NaturalLess("9", "18446744073709551616"));
}

TEST(CleanTest, TakesNoOrders) {
  EXPECT_EQ(Clean("two\nlines\tand\rmore"), "two lines and more");
  EXPECT_EQ(Clean("\033[31mred"), "?[31mred");
  EXPECT_EQ(Clean("a\xC2\x9B"
                  "31m"),
            "a?31m");
  EXPECT_EQ(Clean("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
}

}  // namespace
}  // namespace devmgr::ctl
