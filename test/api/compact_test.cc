// SPDX-License-Identifier: Apache-2.0
#include <devmgr/compact.h>
#include <devmgr/device_objects.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SharedText, CopiesShareTheirBytes) {
  const SharedText text("a text");
  SharedText copy("another");
  copy = text;
  EXPECT_EQ(copy.view().data(), text.view().data());
  SharedText moved = copy;
  const SharedText taken = std::move(moved);
  EXPECT_EQ(taken.view().data(), text.view().data());
  SharedText assigned("another");
  assigned = taken;
  EXPECT_EQ(assigned, "a text");
  EXPECT_EQ(sizeof(SharedText), sizeof(void*));
}

TEST(SharedText, IsComparedByItsBytes) {
  const SharedText text("b");
  EXPECT_EQ(text, SharedText("b"));
  EXPECT_EQ(text, std::string("b"));
  EXPECT_EQ(std::string_view("b"), text);
  EXPECT_NE(text, "a");
  EXPECT_LT(SharedText("a"), text);
  EXPECT_LT(text, "c");
  EXPECT_EQ(SharedText(), "");
  EXPECT_TRUE(SharedText("").empty());
  EXPECT_EQ(SharedText(std::string("a\0b", 3)).size(), 3u);
}

TEST(RareVector, IsAVectorThatIsSmallWhenEmpty) {
  RareVector<int> values;
  EXPECT_THAT(values, IsEmpty());
  EXPECT_EQ(sizeof(values), sizeof(void*));
  values.push_back(1);
  const RareVector<int> copy = values;
  values.push_back(2);
  EXPECT_THAT(values, ElementsAre(1, 2));
  EXPECT_THAT(copy, ElementsAre(1));
  EXPECT_EQ(values[1], 2);
  EXPECT_NE(copy, values);
  EXPECT_EQ(RareVector<int>(std::vector<int>()), RareVector<int>());
}

TEST(SortedMap, KeepsItsNamesInOrderAndOnce) {
  SortedMap<int> map;
  EXPECT_TRUE(map.emplace("b", 2));
  EXPECT_TRUE(map.emplace("d", 4));
  EXPECT_TRUE(map.emplace("a", 1));
  EXPECT_FALSE(map.emplace("b", 9));
  map["c"] = 3;
  map["d"] += 1;
  std::vector<std::pair<std::string, int>> entries;
  for (const auto& [name, value] : map) entries.emplace_back(name, value);
  EXPECT_THAT(entries, ElementsAre(std::pair("a", 1), std::pair("b", 2),
                                   std::pair("c", 3), std::pair("d", 5)));
}

TEST(SortedMap, FindsByName) {
  const SortedMap<int> map = {{"b", 2}, {"a", 1}};
  EXPECT_THAT(map, SizeIs(2));
  EXPECT_EQ(*map.Find("a"), 1);
  EXPECT_EQ(map.at("b"), 2);
  for (const char* name : {"", "aa", "c"}) {
    EXPECT_EQ(map.Find(name), nullptr) << name;
    EXPECT_FALSE(map.contains(name));
    EXPECT_THROW(map.at(name), std::out_of_range);
  }
  EXPECT_EQ(map, (SortedMap<int>{{"a", 1}, {"b", 2}}));
}

TEST(SliceDevice, StaysSmall) {
  EXPECT_LE(sizeof(SliceDevice), 152u);
  EXPECT_LE(sizeof(SortedMap<DeviceAttribute>::Entry), 24u);
  EXPECT_LE(sizeof(SortedMap<DeviceCapacity>::Entry), 48u);
}

}  // namespace
}  // namespace devmgr
