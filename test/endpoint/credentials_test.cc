// SPDX-License-Identifier: Apache-2.0
#include "endpoint/credentials.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "endpoint/certificates.h"
#include "endpoint/limits.h"
#include "endpoint/tokens.h"
#include "support/temp_folder.h"

namespace devmgr::endpoint {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kNow = 1'780'000'000;
constexpr std::int64_t kDay = 24 * 3600;
const std::vector<std::string> kNames = {"127.0.0.1", "::1", "localhost"};

TEST(Certificates, AreRenewedAfterTwoThirdsOfTheirTime) {
  const KeyPair authority = *MakeAuthority(kNow);
  const KeyPair leaf = *MakeLeaf(authority, kNames, kNow);
  EXPECT_TRUE(IsGoodLeaf(leaf, authority, kNames, kNow));
  EXPECT_TRUE(IsGoodLeaf(leaf, authority, kNames, kNow + 240 * kDay));
  EXPECT_FALSE(IsGoodLeaf(leaf, authority, kNames, kNow + 250 * kDay));
  EXPECT_FALSE(IsGoodLeaf(leaf, authority, {"10.0.0.1"}, kNow));
  EXPECT_FALSE(IsGoodLeaf(leaf, *MakeAuthority(kNow), kNames, kNow));
  EXPECT_FALSE(
      IsGoodLeaf({leaf.certificate, authority.key}, authority, kNames, kNow));
  EXPECT_FALSE(IsGoodLeaf({"", ""}, authority, kNames, kNow));
  EXPECT_TRUE(IsGoodAuthority(authority, kNow));
  EXPECT_FALSE(IsGoodAuthority(authority, kNow + 3400 * kDay));
}

TEST(Credentials, StayUntilTheyAreOld) {
  const TempFolder folder;
  const Credentials credentials(folder.path() / "k", kNames);
  EXPECT_TRUE(*credentials.KeepCertificate(kNow));
  EXPECT_FALSE(*credentials.KeepCertificate(kNow));
  EXPECT_TRUE(*credentials.KeepCertificate(kNow + 300 * kDay));
  const std::string token = *credentials.Token("gpu.example.com");
  EXPECT_EQ(*credentials.Token("gpu.example.com"), token);
  EXPECT_NE(*credentials.Token("nic.example.com"), token);
  EXPECT_FALSE(credentials.Token("../x").ok());
  EXPECT_EQ(credentials.LastPort(), 0);
  ASSERT_TRUE(credentials.RememberPort(4711).ok());
  EXPECT_EQ(credentials.LastPort(), 4711);
}

TEST(TokenBook, KnowsAnOldTokenForTenMinutes) {
  const TimePoint start{std::chrono::hours(1)};
  TokenBook book;
  book.Set("d", "one", start);
  book.Set("e", "two", start);
  EXPECT_EQ(book.DriverOf("Bearer one", start), "d");
  EXPECT_EQ(book.DriverOf("Bearer two", start), "e");
  for (const char* wrong : {"", "Bearer ", "one", "Bearer On", "Basic one"}) {
    EXPECT_EQ(book.DriverOf(wrong, start), std::nullopt) << wrong;
  }
  book.Set("d", "three", start);
  EXPECT_EQ(book.DriverOf("Bearer one", start + minutes(9)), "d");
  EXPECT_EQ(book.DriverOf("Bearer three", start + minutes(9)), "d");
  EXPECT_EQ(book.DriverOf("Bearer one", start + minutes(10)), std::nullopt);
}

TEST(RequestRate, RefillsWithTime) {
  const TimePoint start{std::chrono::hours(1)};
  RequestRate rate(2);
  EXPECT_TRUE(rate.Take(start));
  EXPECT_TRUE(rate.Take(start));
  EXPECT_FALSE(rate.Take(start));
  EXPECT_TRUE(rate.Take(start + seconds(1)));
  EXPECT_TRUE(rate.Take(start + seconds(1)));
  EXPECT_FALSE(rate.Take(start + seconds(1)));
}

TEST(WrongTokens, AreSlowAfterTenInAMinute) {
  const TimePoint start{std::chrono::hours(1)};
  WrongTokens wrong;
  for (std::size_t i = 0; i < WrongTokens::kFree; ++i) {
    EXPECT_EQ(wrong.Note("a", start), seconds(0));
  }
  EXPECT_EQ(wrong.Note("a", start), seconds(1));
  EXPECT_EQ(wrong.Note("b", start), seconds(0));
  EXPECT_EQ(wrong.Note("a", start + minutes(1)), seconds(0));
}

}  // namespace
}  // namespace devmgr::endpoint
