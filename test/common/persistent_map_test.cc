// SPDX-License-Identifier: Apache-2.0
#include <devmgr/persistent_map.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace devmgr {
namespace {

using Map = PersistentMap<std::string, int>;
using Entries = std::vector<std::pair<std::string, int>>;

Entries EntriesOf(const Map& map) { return {map.begin(), map.end()}; }
Entries EntriesOf(const std::map<std::string, int>& map) {
  return {map.begin(), map.end()};
}

TEST(PersistentMapTest, IsReadAsAMapIs) {
  Map map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.begin(), map.end());
  EXPECT_TRUE(map.insert_or_assign("b", 2));
  EXPECT_TRUE(map.insert_or_assign("a", 1));
  EXPECT_TRUE(map.insert_or_assign("d", 4));
  EXPECT_FALSE(map.insert_or_assign("b", 3));
  EXPECT_EQ(EntriesOf(map), (Entries{{"a", 1}, {"b", 3}, {"d", 4}}));
  EXPECT_EQ(map.size(), 3U);
  EXPECT_EQ(map.at("b"), 3);
  EXPECT_EQ(map.back().first, "d");
  EXPECT_EQ(*map.Find(std::string_view("d")), 4);
  EXPECT_EQ(map.Find("c"), nullptr);
  EXPECT_EQ(map.find("c"), map.end());
  EXPECT_EQ(map.find("a")->second, 1);
  EXPECT_EQ(map.lower_bound("c")->first, "d");
  EXPECT_EQ(map.lower_bound("b")->first, "b");
  EXPECT_EQ(map.upper_bound("b")->first, "d");
  EXPECT_EQ(map.upper_bound("d"), map.end());
  EXPECT_EQ(map.erase("c"), 0U);
  EXPECT_EQ(map.erase("b"), 1U);
  EXPECT_FALSE(map.contains("b"));
  EXPECT_EQ(EntriesOf(map), (Entries{{"a", 1}, {"d", 4}}));
}

TEST(PersistentMapTest, ACopyKeepsWhatWasThere) {
  Map map;
  for (int i = 0; i < 100; ++i) map.insert_or_assign(std::to_string(i), i);
  const Map before = map;
  EXPECT_TRUE(before.SharesAllWith(map));
  const Entries entries = EntriesOf(before);
  for (int i = 0; i < 100; i += 2) map.erase(std::to_string(i));
  for (int i = 1; i < 100; i += 2) map.insert_or_assign(std::to_string(i), -i);
  EXPECT_FALSE(before.SharesAllWith(map));
  EXPECT_EQ(EntriesOf(before), entries);
  EXPECT_EQ(map.size(), 50U);
  EXPECT_EQ(map.at("99"), -99);
}

TEST(PersistentMapTest, IsComparedByWhatItHolds) {
  Map a;
  Map b;
  for (int i = 0; i < 50; ++i) {
    a.insert_or_assign(std::to_string(i), i);
    b.insert_or_assign(std::to_string(49 - i), 49 - i);
  }
  EXPECT_EQ(a, b);
  b.insert_or_assign("7", 8);
  EXPECT_NE(a, b);
  b.erase("7");
  EXPECT_NE(a, b);
}

/// Histories of changes beside std::map, with copies of many moments that are
/// looked at again at the end.
TEST(PersistentMapTest, EveryCopyOfARandomHistoryStays) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Map map;
    std::map<std::string, int> model;
    std::vector<std::pair<Map, Entries>> moments;
    for (int step = 0; step < 2'000; ++step) {
      const std::string key = std::to_string(random() % (10 * seed));
      if (random() % 3 == 0) {
        ASSERT_EQ(map.erase(key), model.erase(key));
      } else {
        const bool is_new = !model.contains(key);
        model[key] = step;
        if (random() % 2 == 0) {
          ASSERT_EQ(map.insert_or_assign(key, step), is_new);
        } else {
          int& value = map.Edit(std::string_view(key), [&] {
            EXPECT_TRUE(is_new);
            return key;
          });
          value = step;
        }
      }
      ASSERT_EQ(map.size(), model.size());
      const auto bound = model.lower_bound(key);
      const auto found = map.lower_bound(key);
      ASSERT_EQ(found == map.end(), bound == model.end());
      if (bound != model.end()) {
        ASSERT_EQ(found->first, bound->first);
      }
      if (random() % 50 == 0) moments.emplace_back(map, EntriesOf(model));
    }
    EXPECT_EQ(EntriesOf(map), EntriesOf(model));
    for (const auto& [copy, entries] : moments) {
      ASSERT_EQ(EntriesOf(copy), entries);
    }
  }
}

/// Counts how often it is copied.
struct Counted {
  explicit Counted(int* counter) : copies(counter) {}
  Counted(const Counted& other) : copies(other.copies) { ++*copies; }
  Counted(Counted&& other) = default;
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() = default;
  int* copies;
};

TEST(PersistentMapTest, AChangeCopiesAPathOnlyWhereItIsShared) {
  constexpr int kSize = 10'000;
  int copies = 0;
  PersistentMap<int, Counted> map;
  for (int i = 0; i < kSize; ++i) map.insert_or_assign(i, Counted(&copies));
  EXPECT_EQ(copies, 0);
  const PersistentMap<int, Counted> view = map;
  map.insert_or_assign(kSize / 3, Counted(&copies));
  // The height of such a tree is at most 1.44 times its logarithm.
  EXPECT_LE(copies, 20);
  const int after_first = copies;
  map.insert_or_assign(kSize / 3, Counted(&copies));
  EXPECT_EQ(copies, after_first);
}

/// Says in one look how two keys stand, and counts the other kind of question.
struct Ordered {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    ++asked;
    return a < b;
  }
  int Order(std::string_view a, std::string_view b) const {
    return a.compare(b);
  }
  static inline int asked = 0;
};

TEST(PersistentMapTest, AnOrderOfKeysIsAsGoodAsTwoQuestions) {
  PersistentMap<std::string, int, Ordered> map;
  Map other;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string key = std::to_string(random() % 300);
    if (random() % 3 == 0) {
      EXPECT_EQ(map.erase(key), other.erase(key));
    } else {
      EXPECT_EQ(map.insert_or_assign(key, i), other.insert_or_assign(key, i));
    }
    EXPECT_EQ(map.contains(key), other.contains(key));
  }
  EXPECT_EQ(Entries(map.begin(), map.end()), EntriesOf(other));
  EXPECT_EQ(Ordered::asked, 0);
}

TEST(PersistentSetTest, IsSearchedByWhatComparesWithItsKeys) {
  PersistentSet<std::pair<std::string, int>> set;
  EXPECT_TRUE(set.insert({"a", 2}));
  EXPECT_TRUE(set.insert({"a", 1}));
  EXPECT_FALSE(set.insert({"a", 1}));
  EXPECT_TRUE(set.insert({"b", 1}));
  EXPECT_EQ(set.lower_bound({"a", 2})->second, 2);
  EXPECT_EQ(set.lower_bound({"b", 0})->first, "b");
  EXPECT_EQ(set.erase({"a", 3}), 0U);
  EXPECT_EQ(set.erase({"a", 2}), 1U);
  EXPECT_EQ(set.size(), 2U);
}

TEST(PersistentMapTest, CopiesAreReadWhileTheMapChanges) {
  Map map;
  for (int i = 0; i < 500; ++i) map.insert_or_assign(std::to_string(i), i);
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([copy = map] {
      for (int round = 0; round < 20; ++round) {
        long long sum = 0;
        for (const auto& [key, value] : copy) sum += value;
        EXPECT_EQ(sum, 499LL * 500 / 2);
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    map.insert_or_assign(std::to_string(i), -i);
    if (i % 3 == 0) map.erase(std::to_string(i / 2));
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace devmgr
