// SPDX-License-Identifier: Apache-2.0
#include "api/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "common/status.h"

namespace devmgr::api {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Amount {
  std::string text;
  std::int64_t whole;
  std::int32_t nanos = 0;
};

void ExpectAmount(const Amount& amount) {
  const auto quantity = ParseQuantity(amount.text);
  ASSERT_TRUE(quantity.ok()) << MessageOf(quantity.status());
  EXPECT_EQ(quantity->whole, amount.whole) << amount.text;
  EXPECT_EQ(quantity->nanos, amount.nanos) << amount.text;
  EXPECT_EQ(quantity->text, amount.text);
}

TEST(Quantity, ReadsPlainNumbers) {
  for (const Amount& amount :
       {Amount{"0", 0}, Amount{"1", 1}, Amount{"+7", 7}, Amount{"-7", -7},
        Amount{"007", 7}, Amount{"1.", 1}, Amount{".5", 0, 500'000'000},
        Amount{"-0", 0}, Amount{"1.25", 1, 250'000'000},
        Amount{"-1.25", -1, -250'000'000}, Amount{"0.000000001", 0, 1}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, ReadsDecimalSuffixes) {
  for (const Amount& amount :
       {Amount{"1n", 0, 1}, Amount{"1u", 0, 1'000}, Amount{"1m", 0, 1'000'000},
        Amount{"1500m", 1, 500'000'000}, Amount{"2k", 2'000},
        Amount{"3M", 3'000'000}, Amount{"4G", 4'000'000'000},
        Amount{"5T", 5'000'000'000'000}, Amount{"6P", 6'000'000'000'000'000},
        Amount{"7E", 7'000'000'000'000'000'000}, Amount{"1.5k", 1'500},
        Amount{"0.001k", 1}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, ReadsBinarySuffixes) {
  for (const Amount& amount :
       {Amount{"1Ki", 1024}, Amount{"1Mi", 1 << 20}, Amount{"1Gi", 1 << 30},
        Amount{"1Ti", std::int64_t{1} << 40},
        Amount{"1Pi", std::int64_t{1} << 50},
        Amount{"7Ei", std::int64_t{7} << 60}, Amount{"0.5Ki", 512},
        Amount{"1.5Gi", 1'610'612'736}, Amount{"101430960Ki", 103'865'303'040},
        Amount{"0.1Ki", 102, 400'000'000}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, ReadsExponents) {
  for (const Amount& amount :
       {Amount{"1e3", 1000}, Amount{"1E3", 1000}, Amount{"1.5e+2", 150},
        Amount{"12e-1", 1, 200'000'000}, Amount{"0e999999999999999999999", 0},
        Amount{"5E", 5'000'000'000'000'000'000},
        Amount{"100000000000000000000e-20", 1}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, ClampsWhatIsBeyondSixtyFourBits) {
  for (const Amount& amount :
       {Amount{"9223372036854775807", kMax},
        Amount{"9223372036854775808", kMax}, Amount{"8Ei", kMax},
        Amount{"10E", kMax}, Amount{"1e100", kMax},
        Amount{"1e99999999999999999999", kMax}, Amount{"-8Ei", -kMax},
        Amount{"-1e100", -kMax}, Amount{"9223372036854775807.5", kMax},
        Amount{std::string(100'000, '9') + "Ei", kMax}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, RoundsBelowANanoAwayFromZero) {
  for (const Amount& amount :
       {Amount{"0.1n", 0, 1}, Amount{"-0.1n", 0, -1},
        Amount{"1.0000000001", 1, 1}, Amount{"0.9999999999", 1},
        Amount{"1e-100", 0, 1}, Amount{"1e-99999999999999999999", 0, 1},
        Amount{"0." + std::string(100'000, '0') + "1Ei", 0, 1},
        Amount{"0.00000000000000000001Ki", 0, 1}}) {
    ExpectAmount(amount);
  }
}

TEST(Quantity, SaysThatItWasClamped) {
  for (const char* text : {"9223372036854775808", "10E", "-1e100", "8Ei"}) {
    EXPECT_TRUE(IsClamped(*ParseQuantity(text))) << text;
  }
  for (const char* text : {"9223372036854775807", "0", "7Ei", "1e-100"}) {
    EXPECT_FALSE(IsClamped(*ParseQuantity(text))) << text;
  }
}

TEST(Quantity, IsATextAgain) {
  EXPECT_EQ(QuantityText(*ParseQuantity("1024Mi")), "1024Mi");
  const auto computed = [](std::int64_t whole, std::int32_t nanos) {
    return QuantityText(Quantity{whole, nanos, {}});
  };
  EXPECT_EQ(computed(0, 0), "0");
  EXPECT_EQ(computed(-3, 0), "-3");
  EXPECT_EQ(computed(1, 500'000'000), "1.5");
  EXPECT_EQ(computed(0, -1), "-0.000000001");
  EXPECT_EQ(computed(kMax, 0), "9223372036854775807");
  EXPECT_EQ(computed(std::numeric_limits<std::int64_t>::min(), 0),
            "-9223372036854775808");
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",       " ",     "1 ",    " 1",       "+",     "-",      ".",
        "k",      "Ki",    "1Kb",   "1KI",      "1ki",   "1mi",    "1.1.M",
        "1+1.0M", "0.1am", "aoeu",  ".5i",      "1i",    "-3.01i", "-3.01e-",
        "1e",     "1e+",   "1e1.5", "0x10",     "1_000", "--1",    "inf",
        ".nan",   "1Kim",  "1 Ki",  "\xC2\xB5", "1ee3",  "1,5"}) {
    const auto quantity = ParseQuantity(text);
    EXPECT_EQ(quantity.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(MessageOf(ParseQuantity("1Kb").status()),
              ::testing::HasSubstr("'1Kb'"));
}

TEST(Quantity, ComparesAmounts) {
  const Quantity one = *ParseQuantity("1");
  EXPECT_TRUE(one == *ParseQuantity("1000m"));
  EXPECT_TRUE(*ParseQuantity("1Ki") == *ParseQuantity("1024"));
  EXPECT_TRUE(Compare(*ParseQuantity("999m"), one) < 0);
  EXPECT_TRUE(Compare(*ParseQuantity("-1.5"), *ParseQuantity("-1.4")) < 0);
  EXPECT_TRUE(Compare(one, *ParseQuantity("1e0")) == 0);
  EXPECT_TRUE(IsNegative(*ParseQuantity("-1n")));
  EXPECT_FALSE(IsNegative(*ParseQuantity("-0")));
  EXPECT_FALSE(ParseQuantity("1500m")->IsInteger());
  EXPECT_TRUE(ParseQuantity("2000m")->IsInteger());
}

}  // namespace
}  // namespace devmgr::api
