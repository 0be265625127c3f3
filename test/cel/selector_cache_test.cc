// SPDX-License-Identifier: Apache-2.0
#include "cel/selector_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/status_matchers.h"

namespace devmgr::cel {
namespace {

TEST(SelectorCacheTest, CompilesATextOnce) {
  SelectorCache cache(2);
  const auto first = cache.Compile("true");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*cache.Compile("true"), *first);
  EXPECT_NE(*cache.Compile("true", Selector::Kind::kOldDevice), *first);
  EXPECT_NE(*cache.Compile("true", Selector::Kind::kDerivedAttribute), *first);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(SelectorCacheTest, KeepsWhatWasUsedLast) {
  SelectorCache cache(2);
  const auto first = cache.Compile("true");
  const auto second = cache.Compile("false");
  ASSERT_THAT(cache.Compile("true"), IsOk());
  ASSERT_THAT(cache.Compile("true || false"), IsOk());
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(*cache.Compile("true"), *first);
  EXPECT_NE(*cache.Compile("false"), *second);
}

TEST(SelectorCacheTest, KeepsErrors) {
  SelectorCache cache(2);
  EXPECT_THAT(cache.Compile("1 +"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.Compile("1 +").status(), cache.Compile("1 +").status());
  EXPECT_THAT(cache.Compile(std::string(100'000, ' ')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(cache.size(), 1U) << "a text that is no expression is not kept";
}

TEST(SelectorCacheTest, IsSharedByThreads) {
  SelectorCache cache(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&cache] {
      for (int n = 0; n < 200; ++n) {
        EXPECT_THAT(cache.Compile(std::to_string(n % 5) + " == 1"), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 3U);
}

}  // namespace
}  // namespace devmgr::cel
