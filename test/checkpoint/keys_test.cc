// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/keys.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace devmgr::checkpoint {
namespace {

TEST(KeysTest, HistorySortsByNumber) {
  const std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  std::string last;
  for (const std::uint64_t seq :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255},
        std::uint64_t{256}, std::uint64_t{1} << 40, max}) {
    const std::string key = HistoryKey(seq);
    EXPECT_LT(last, key);
    EXPECT_LT(key, HistoryEnd());
    EXPECT_EQ(HistorySeq(key), seq);
    EXPECT_EQ(KindOf(key), KeyKind::kHistory);
    last = key;
  }
}

TEST(KeysTest, TellsKindsApart) {
  EXPECT_EQ(KindOf(FormatKey()), KeyKind::kFormat);
  EXPECT_EQ(KindOf(SeqKey()), KeyKind::kSeq);
  EXPECT_EQ(KindOf(FirstKey()), KeyKind::kFirst);
  EXPECT_EQ(KindOf(PodKey({"u"})), KeyKind::kPod);
  EXPECT_EQ(KindOf(ClaimKey({"u"})), KeyKind::kClaim);
  EXPECT_EQ(KindOf(IdentityKeyOf("Pod", {"n", "m"})), KeyKind::kIdentity);
  EXPECT_EQ(KindOf(ResourceKey("r")), KeyKind::kResource);
  EXPECT_EQ(KindOf(HealthKey({"d", "p", "x"})), KeyKind::kHealth);
  EXPECT_EQ(KindOf(SourceKeyOf({"directory /m"})), KeyKind::kSource);
  EXPECT_EQ(KindOf(HolderKey({"c1"})), KeyKind::kHolder);
  EXPECT_EQ(KindOf(ObjectKey("g/r//n")), KeyKind::kObject);
  EXPECT_EQ(KindOf("x/1"), std::nullopt);
  EXPECT_EQ(KindOf("meta/other"), std::nullopt);
  EXPECT_EQ(KindOf(""), std::nullopt);
}

TEST(KeysTest, AnObjectKeepsItsKeyWhateverThatIs) {
  for (const std::string key : {"g/r/ns/name", "~o/x", "\xff\xff"}) {
    EXPECT_EQ(ObjectKeyIn(ObjectKey(key)), key);
    EXPECT_LT(ObjectKey(key), ObjectsEnd());
    EXPECT_LT(ObjectKey(""), ObjectKey(key));
    EXPECT_TRUE(MayBeIgnored(ObjectKey(key)));
  }
}

TEST(KeysTest, IdentitiesOfDifferentObjectsDiffer) {
  const std::set<std::string> keys = {
      IdentityKeyOf("Pod", {"a", "b/c"}), IdentityKeyOf("Pod", {"a/b", "c"}),
      IdentityKeyOf("Pod", {"", "a/b/c"}), IdentityKeyOf("Poda", {"", "b/c"})};
  EXPECT_EQ(keys.size(), 4u);
}

TEST(KeysTest, RefusesNumbersOfOddSize) {
  EXPECT_EQ(DecodeNumber("1234567"), std::nullopt);
  EXPECT_EQ(DecodeNumber("123456789"), std::nullopt);
  EXPECT_EQ(HistorySeq("h/123"), std::nullopt);
  EXPECT_EQ(HistorySeq("p/12345678"), std::nullopt);
  EXPECT_EQ(DecodeNumber(EncodeNumber(0x0102030405060708)), 0x0102030405060708);
}

TEST(KeysTest, PrintsForPeople) {
  EXPECT_EQ(PrintKey(HistoryKey(42)), "h/42");
  EXPECT_EQ(PrintKey(PodKey({"uid-1"})), "p/uid-1");
  EXPECT_EQ(PrintKey(IdentityKeyOf("Pod", {"n", "m\\"})),
            "i/Pod\\x00n\\x00m\\x5c");
}

}  // namespace
}  // namespace devmgr::checkpoint
