// SPDX-License-Identifier: Apache-2.0
#include "common/back_off.h"

#include <gtest/gtest.h>

namespace devmgr {
namespace {

using std::chrono::milliseconds;

TEST(BackOffTest, DoublesUpToTheLimitAndBeginsAnew) {
  BackOff back_off(milliseconds(50), milliseconds(300));
  for (const int delay : {50, 100, 200, 300, 300}) {
    EXPECT_EQ(back_off.Next(), milliseconds(delay));
  }
  back_off.Reset();
  EXPECT_EQ(back_off.Next(), milliseconds(50));
}

}  // namespace
}  // namespace devmgr
