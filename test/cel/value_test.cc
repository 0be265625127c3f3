// SPDX-License-Identifier: Apache-2.0
#include "cel/value.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cel/compare.h"
#include "cel/double_text.h"
#include "cel/time_text.h"
#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

bool AreEqual(const Value& a, const Value& b) {
  Work work;
  return Equal(a, b, work);
}

TEST(ValueTest, ComparesNumbersAcrossTypes) {
  EXPECT_TRUE(AreEqual(Value::Int(1), Value::Uint(1)));
  EXPECT_TRUE(AreEqual(Value::Int(1), Value::Double(1.0)));
  EXPECT_FALSE(AreEqual(Value::Int(-1),
                        Value::Uint(std::numeric_limits<uint64_t>::max())));
  EXPECT_FALSE(AreEqual(Value::Int(1), Value::Text("1")));
  EXPECT_TRUE(OrderOf(Value::Int(-1), Value::Uint(0)).order < 0);
  EXPECT_TRUE(OrderOf(Value::Double(1.5), Value::Uint(1)).order > 0);
  EXPECT_FALSE(OrderOf(Value::Int(1), Value::Text("1")).comparable);
}

TEST(ValueTest, TakesNanForNothing) {
  const Value nan = Value::Double(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(AreEqual(nan, nan));
  EXPECT_FALSE(AreEqual(Value::ListOf({nan}), Value::ListOf({nan})));
}

TEST(ValueTest, FindsKeysByAmount) {
  MapObject map;
  EXPECT_TRUE(map.Insert(Value::Int(1), Value::Text("one")));
  EXPECT_FALSE(map.Insert(Value::Uint(1), Value::Text("again")));
  EXPECT_TRUE(map.Insert(Value::Text("1"), Value::Text("text")));
  EXPECT_TRUE(map.Insert(Value::Bool(true), Value::Text("bool")));
  EXPECT_EQ(map.Find(Value::Double(1.0))->text(), "one");
  EXPECT_EQ(map.Find(Value::Double(1.5)), nullptr);
  EXPECT_EQ(map.Find(Value::Int(2)), nullptr);
  map.Set(Value::Int(1), Value::Text("set"));
  EXPECT_EQ(map.Find(Value::Uint(1))->text(), "set");
  EXPECT_EQ(map.entries().size(), 3U);
}

TEST(ValueTest, CountsHowDeepValuesHoldEachOther) {
  Value value = Value::Int(1);
  for (int i = 0; i < 5; ++i) value = Value::ListOf({value});
  EXPECT_EQ(DepthOf(value), 5);
  EXPECT_EQ(DepthOf(Value::OptionalOf(value)), 6);
  auto map = std::make_shared<MapObject>();
  map->Insert(Value::Int(1), value);
  EXPECT_EQ(DepthOf(Value::Of(Map(map))), 6);
}

TEST(ValueTest, EndsAComparisonThatIsTooMuchWork) {
  Value value = Value::Int(1);
  for (int i = 0; i < 60; ++i) value = Value::ListOf({value, value});
  Value other = Value::Int(1);
  for (int i = 0; i < 60; ++i) other = Value::ListOf({other, other});
  Work work(10'000);
  EXPECT_FALSE(Equal(value, other, work));
  EXPECT_TRUE(work.IsOver());
}

TEST(ValueTest, DescribesItselfBriefly) {
  EXPECT_EQ(Describe(Value::ListOf({Value::Uint(1), Value::Text("a\n")})),
            "[1u, \"a\n\"]");
  const Value many = Value::ListOf(std::vector<Value>(1000, Value::Int(1)));
  EXPECT_LT(Describe(many).size(), 250U);
}

TEST(SemverTest, OrdersAsTheSpecificationDoes) {
  const std::vector<std::string> ascending = {
      "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
      "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",       "1.0.0",
      "1.0.1",        "1.2.0",         "1.10.0",           "2.0.0"};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    const auto a = ParseSemver(ascending[i], false);
    const auto b = ParseSemver(ascending[i + 1], false);
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(Compare(*a, *b) < 0) << ascending[i];
    EXPECT_TRUE(Compare(*b, *a) > 0) << ascending[i];
  }
}

TEST(SemverTest, NormalizesWhatIsNearlyOne) {
  for (const std::string text : {"v1.2.3", "1.2", "v1", "01.002.3"}) {
    EXPECT_FALSE(ParseSemver(text, false)) << text;
    EXPECT_TRUE(ParseSemver(text, true)) << text;
  }
  for (const std::string text : {"", "v", "1.2-rc", "1..2", "1.2.3.4", "a.b.c",
                                 "1.2.3-01", "18446744073709551616.0.0"}) {
    EXPECT_FALSE(ParseSemver(text, true)) << text;
  }
}

TEST(Utf8Test, CountsAndAppendsCharacters) {
  std::string text;
  for (const char32_t c : {U'a', U'\u00e9', U'\u4e16', U'\U0001f431'}) {
    AppendUtf8(c, text);
  }
  EXPECT_EQ(text, "a\u00e9\u4e16\U0001f431");
  EXPECT_EQ(CountCharacters(text), 4U);
  EXPECT_EQ(OffsetOf(text, 2), 3U);
  EXPECT_EQ(OffsetOf(text, 9), text.size());
  EXPECT_EQ(FirstCharacter("\U0001f431"), U'\U0001f431');
}

TEST(TimeTextTest, ReadsAndWritesTimes) {
  const auto time = ReadTimestamp("2009-02-13T23:31:30.25+01:00");
  ASSERT_TRUE(time);
  EXPECT_EQ(TimestampText(*time), "2009-02-13T22:31:30.25Z");
  EXPECT_EQ(TimestampText({kMinSeconds, 0}), "0001-01-01T00:00:00Z");
  EXPECT_EQ(TimestampText({kMaxSeconds, 999'999'999}),
            "9999-12-31T23:59:59.999999999Z");
  for (const std::string text :
       {"", "2009-02-29T00:00:00Z", "2009-13-01T00:00:00Z",
        "2009-02-13T24:00:00Z", "2009-02-13T23:31:30", "2009-02-13 23:31:30Z",
        "2009-02-13T23:31:30.Z", "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00"}) {
    EXPECT_FALSE(ReadTimestamp(text)) << text;
  }
}

TEST(TimeTextTest, ReadsAndWritesDurations) {
  EXPECT_EQ(DurationText(*ReadDuration("-1h30m1.5s")), "-5401.5s");
  EXPECT_EQ(ReadDuration("1ms1us1ns")->nanos, 1'001'001);
  EXPECT_EQ(ReadDuration(".5s")->nanos, 500'000'000);
  EXPECT_EQ(ReadDuration("-9223372036854775808ns")->nanos,
            std::numeric_limits<std::int64_t>::min());
  for (const std::string text :
       {"", "1", "s", "1x", "1s2", "--1s", "9223372036854775808ns",
        "99999999999999999999999999h"}) {
    EXPECT_FALSE(ReadDuration(text)) << text;
  }
}

TEST(DoubleTextTest, ReadsAndWritesDoubles) {
  EXPECT_EQ(DoubleText(1.0), "1");
  EXPECT_EQ(DoubleText(-0.1), "-0.1");
  EXPECT_EQ(DoubleText(100000.0), "100000");
  EXPECT_EQ(DoubleText(1000000.0), "1e+06");
  EXPECT_EQ(DoubleText(0.00001), "1e-05");
  EXPECT_EQ(ReadDouble("1e-400"), 0.0);
  EXPECT_FALSE(ReadDouble("1e400"));
  EXPECT_FALSE(ReadDouble("+-1"));
  EXPECT_FALSE(ReadDouble("1x"));
}

}  // namespace
}  // namespace devmgr::cel
