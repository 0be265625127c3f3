// SPDX-License-Identifier: Apache-2.0
#include "common/enum_names.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace devmgr {
namespace {

enum class Fruit : std::uint8_t { kApple = 1, kPear = 2, kOther = 255 };

constexpr auto kFruits = EnumTable<Fruit>({
    {Fruit::kApple, "apple"},
    {Fruit::kPear, "pear"},
});

TEST(EnumNamesTest, ReadsBothWays) {
  EXPECT_EQ(kFruits.Of(Fruit::kApple), "apple");
  EXPECT_EQ(kFruits.Of(Fruit::kPear), "pear");
  EXPECT_EQ(kFruits.Find("pear"), Fruit::kPear);
}

TEST(EnumNamesTest, HasAFallbackForAllElse) {
  EXPECT_EQ(kFruits.Of(Fruit::kOther), "");
  EXPECT_EQ(kFruits.Of(static_cast<Fruit>(7), "a fruit"), "a fruit");
  EXPECT_EQ(kFruits.Find("plum"), std::nullopt);
}

TEST(EnumNamesTest, KnowsHowManyThereAre) {
  // What a table is held against when it is compiled.
  EXPECT_EQ(CountEnumerators<Fruit>(), 2u);
  EXPECT_TRUE(IsEnumerator<Fruit::kOther>());
  EXPECT_FALSE(IsEnumerator<static_cast<Fruit>(3)>());
}

}  // namespace
}  // namespace devmgr
