// SPDX-License-Identifier: Apache-2.0
#include <devmgr/duration.h>
#include <gtest/gtest.h>

namespace devmgr {
namespace {

using std::chrono::milliseconds;

TEST(ParseDurationTest, TakesDurationsAsGoDoes) {
  EXPECT_EQ(ParseDuration("20s"), milliseconds(20'000));
  EXPECT_EQ(ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(ParseDuration("2m"), milliseconds(120'000));
  EXPECT_EQ(ParseDuration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(ParseDuration(".5s"), milliseconds(500));
  EXPECT_EQ(ParseDuration("0"), milliseconds(0));
  EXPECT_EQ(ParseDuration("0s"), milliseconds(0));
}

TEST(ParseDurationTest, RefusesAllElse) {
  for (const char* text : {"", "20", "s", "-1s", "+1s", "1 s", "1x", "1s2",
                           ".s", "1..5s", "99999999999999999999h", "1e3s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(FormatDurationTest, TakesTheLongestUnitThatLosesNothing) {
  for (const char* text : {"2h", "90m", "5s", "1500ms", "0h"}) {
    const auto duration = ParseDuration(text);
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(FormatDuration(*duration), text);
  }
  EXPECT_EQ(FormatDuration(milliseconds(7'200'000)), "2h");
  EXPECT_EQ(FormatDuration(milliseconds(-1)), "-1ms");
}

}  // namespace
}  // namespace devmgr
