// SPDX-License-Identifier: Apache-2.0
#include "device/id_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace devmgr::device {
namespace {

TEST(IdOrderTest, NumbersCompareAsNumbers) {
  const std::vector<std::string> sorted = {"",
                                           "2",
                                           "10",
                                           "GPU-1",
                                           "gpu",
                                           "gpu-0",
                                           "gpu-2",
                                           "gpu-2a",
                                           "gpu-10",
                                           "gpu-10:0",
                                           "gpu-10:2",
                                           "gpu-10:11",
                                           "gpu-010000000000000000000000",
                                           "gpu-10000000000000000000001",
                                           "gpu-x"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(IdLess(sorted[i], sorted[j]), i < j)
          << sorted[i] << " against " << sorted[j];
    }
  }
}

// A map breaks if this is no order, so all short IDs of a few letters are
// tried.
TEST(IdOrderTest, IsAStrictTotalOrder) {
  std::vector<std::string> ids = {""};
  const std::string letters = "01/a";
  for (std::size_t from = 0, length = 1; length <= 4; ++length) {
    const std::size_t to = ids.size();
    for (; from < to; ++from) {
      for (const char letter : letters) ids.push_back(ids[from] + letter);
    }
  }
  ASSERT_EQ(ids.size(), 1u + 4 + 16 + 64 + 256);
  std::stable_sort(ids.begin(), ids.end(), IdLess);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < ids.size(); ++j) {
      ASSERT_EQ(IdLess(ids[i], ids[j]), i < j)
          << ids[i] << " against " << ids[j];
    }
  }
}

}  // namespace
}  // namespace devmgr::device
