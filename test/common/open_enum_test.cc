// SPDX-License-Identifier: Apache-2.0
#include <devmgr/open_enum.h>
#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "common/enum_names.h"

namespace devmgr {
namespace {

enum class Metal { kIron, kTin };

std::string_view MetalName(Metal metal) {
  static constexpr auto kNames =
      EnumTable<Metal>({{Metal::kIron, "iron"}, {Metal::kTin, "tin"}});
  return kNames.Of(metal);
}

using OpenMetal = OpenEnum<Metal, MetalName>;

TEST(OpenEnumTest, AKnownWordIsItsValue) {
  const OpenMetal tin = OpenMetal::OfWord("tin");
  EXPECT_EQ(tin, Metal::kTin);
  EXPECT_EQ(tin.known(), Metal::kTin);
  EXPECT_EQ(tin.name(), "tin");
  EXPECT_NE(tin, Metal::kIron);
}

TEST(OpenEnumTest, AnUnknownWordIsKept) {
  for (const char* word : {"gold", "Tin", ""}) {
    const OpenMetal other = OpenMetal::OfWord(word);
    EXPECT_EQ(other.name(), word);
    EXPECT_EQ(other.known(), std::nullopt) << word;
    EXPECT_EQ(other, OpenMetal::OfWord(word));
    EXPECT_NE(other, OpenMetal::OfWord("lead"));
    EXPECT_NE(other, Metal::kIron) << word;
    EXPECT_NE(other, Metal::kTin) << word;
  }
}

TEST(OpenEnumTest, IsMadeOfAValue) {
  const OpenMetal iron = Metal::kIron;
  EXPECT_EQ(iron.name(), "iron");
  EXPECT_EQ(iron, OpenMetal::OfWord("iron"));
}

}  // namespace
}  // namespace devmgr
