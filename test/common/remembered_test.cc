// SPDX-License-Identifier: Apache-2.0
#include "common/remembered.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr {
namespace {

TEST(RememberedTest, IsMadeAnewWhenItsKeyDiffers) {
  Remembered<int, std::string> remembered;
  int made = 0;
  const auto of = [&](int key) {
    return remembered.Of(key, [&] {
      ++made;
      return std::to_string(key);
    });
  };
  const auto zero = of(0);
  EXPECT_EQ(*zero, "0");
  EXPECT_EQ(of(0), zero);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(*of(7), "7");
  EXPECT_EQ(*zero, "0");
  EXPECT_EQ(*of(0), "0");
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace devmgr
