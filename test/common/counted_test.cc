// SPDX-License-Identifier: Apache-2.0
#include "common/counted.h"

#include <gtest/gtest.h>

namespace devmgr {
namespace {

TEST(CountedTest, OneIsSingular) {
  EXPECT_EQ(Counted(0, "device"), "0 devices");
  EXPECT_EQ(Counted(1, "device"), "1 device");
  EXPECT_EQ(Counted(std::size_t{2}, "device"), "2 devices");
}

TEST(CountedTest, SpansAreInSecondsWhereTheyAreWhole) {
  using std::chrono::milliseconds;
  EXPECT_EQ(SpanText(milliseconds(45'000)), "45 s");
  EXPECT_EQ(SpanText(milliseconds(1'500)), "1500 ms");
  EXPECT_EQ(SpanText(milliseconds(0)), "0 ms");
}

}  // namespace
}  // namespace devmgr
