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
#include <tuple>
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

using Change = std::tuple<std::string, int, int>;  ///< 0: there is none.

std::vector<Change> ChangesOf(const Map& before, const Map& now) {
  std::vector<Change> changes;
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    if (was != nullptr) {
      changes.emplace_back(was->first, was->second,
                           is != nullptr ? is->second : 0);
    } else if (is != nullptr) {
      changes.emplace_back(is->first, 0, is->second);
    }
  });
  return changes;
}

std::vector<Change> ChangesOf(const std::map<std::string, int>& before,
                              const std::map<std::string, int>& now) {
  std::map<std::string, std::pair<int, int>> all;
  for (const auto& [key, value] : before) all[key].first = value;
  for (const auto& [key, value] : now) all[key].second = value;
  std::vector<Change> changes;
  for (const auto& [key, values] : all) {
    if (values.first == values.second) continue;
    changes.emplace_back(key, values.first, values.second);
  }
  return changes;
}

/// Between any two moments of a history, in both directions, and to one that
/// shares nothing with it.
TEST(PersistentMapTest, EveryDifferenceOfARandomHistoryIsVisited) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Map map;
    std::map<std::string, int> model;
    std::vector<std::pair<Map, std::map<std::string, int>>> moments;
    for (int step = 1; step <= 1'000; ++step) {
      const std::string key = std::to_string(random() % (20 * seed));
      if (random() % 3 == 0) {
        map.erase(key);
        model.erase(key);
      } else {
        const int value = 1 + static_cast<int>(random() % 3);
        map.insert_or_assign(key, value);
        model[key] = value;
      }
      if (random() % 50 == 0) moments.emplace_back(map, model);
    }
    Map other;
    for (const auto& [key, value] : model) other.insert_or_assign(key, value);
    moments.emplace_back(other, model);
    for (const auto& [before, model_before] : moments) {
      for (const auto& [now, model_now] : moments) {
        ASSERT_EQ(ChangesOf(before, now), ChangesOf(model_before, model_now));
        ASSERT_EQ(before == now, model_before == model_now);
      }
    }
  }
}

/// Counts how often it is compared.
struct Compared {
  int value = 0;
  int* comparisons;
  friend bool operator==(const Compared& a, const Compared& b) {
    ++*a.comparisons;
    return a.value == b.value;
  }
};

TEST(PersistentMapTest, WhatIsSharedIsPassedOver) {
  constexpr int kSize = 10'000;
  int comparisons = 0;
  PersistentMap<int, Compared> map;
  for (int i = 0; i < kSize; ++i)
    map.insert_or_assign(2 * i, {i, &comparisons});
  PersistentMap<int, Compared> changed = map;
  changed.insert_or_assign(kSize, {-1, &comparisons});
  changed.insert_or_assign(kSize / 2 + 1, {-2, &comparisons});
  changed.erase(kSize + kSize / 2);
  std::vector<int> keys;
  changed.VisitChangesSince(map, [&](const auto* was, const auto* is) {
    keys.push_back((was != nullptr ? was : is)->first);
  });
  EXPECT_EQ(keys, (std::vector<int>{kSize / 2 + 1, kSize, kSize + kSize / 2}));
  // Three paths of a tree of that size.
  EXPECT_LE(comparisons, 3 * 20);
}

TEST(PersistentMapTest, IsMadeAndThinnedAsAMapIs) {
  Map map{{"a", 1}, {"b", 2}, {"a", 3}};
  EXPECT_EQ(EntriesOf(map), (Entries{{"a", 1}, {"b", 2}}));
  EXPECT_FALSE(map.emplace("b", 4));
  EXPECT_TRUE(map.emplace("c", 5));
  EXPECT_EQ(map.count("c"), 1U);
  EXPECT_EQ(map.count("d"), 0U);
  EXPECT_EQ(erase_if(map, [](const auto& e) { return e.second % 2 == 1; }), 2U);
  EXPECT_EQ(EntriesOf(map), (Entries{{"b", 2}}));
  const PersistentSet<int> set{3, 1, 3};
  EXPECT_EQ(std::vector<int>(set.begin(), set.end()), (std::vector<int>{1, 3}));
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
