// SPDX-License-Identifier: Apache-2.0
#include "common/shared_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {
namespace {

std::vector<int> Numbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(SharedVectorTest, IsReadAsAVectorIs) {
  for (const int size : {0, 1, 63, 64, 65, 1'000}) {
    const std::vector<int> numbers = Numbers(size);
    const SharedVector<int> vector(numbers);
    EXPECT_EQ(vector.size(), numbers.size());
    EXPECT_EQ(vector.empty(), numbers.empty());
    EXPECT_TRUE(std::equal(vector.begin(), vector.end(), numbers.begin(),
                           numbers.end()));
    for (int i = 0; i < size; ++i) {
      EXPECT_EQ(vector[static_cast<std::size_t>(i)], i);
    }
    EXPECT_EQ(std::lower_bound(vector.begin(), vector.end(), size / 2) -
                  vector.begin(),
              size / 2);
  }
}

TEST(SharedVectorTest, ACopyKeepsWhatWasThere) {
  SharedVector<int> vector(Numbers(200));
  const SharedVector<int> copy = vector;
  EXPECT_EQ(copy, vector);
  vector.Edit(70) = -1;
  vector.Edit(71) = -2;
  EXPECT_NE(copy, vector);
  EXPECT_EQ(copy[70], 70);
  EXPECT_EQ(vector[70], -1);
  EXPECT_EQ(vector[71], -2);
  // What was not changed is the same element, not only an equal one.
  EXPECT_EQ(&copy[0], &vector[0]);
  EXPECT_NE(&copy[72], &vector[72]);
}

TEST(SharedVectorTest, WhatIsTakenIsNotMissingInCopies) {
  SharedVector<std::string> vector({"a", "b"});
  const SharedVector<std::string> copy = vector;
  EXPECT_EQ(vector.Take(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(vector.empty());
  EXPECT_EQ(copy.size(), 2U);
  EXPECT_EQ(copy[0], "a");
}

}  // namespace
}  // namespace devmgr
