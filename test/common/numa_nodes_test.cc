// SPDX-License-Identifier: Apache-2.0
#include "common/numa_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace devmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(NumberListTest, ReadsWhatTheKernelWrites) {
  EXPECT_THAT(ParseNumberList("0"), Optional(ElementsAre(0)));
  EXPECT_THAT(ParseNumberList("0-2,5,8-9"),
              Optional(ElementsAre(0, 1, 2, 5, 8, 9)));
  EXPECT_THAT(ParseNumberList(""), Optional(IsEmpty()));
}

TEST(NumberListTest, RefusesAllElse) {
  for (const char* text : {",", "a", "1-", "-1", "3-2", "1,1", "2,1", "0 ",
                           "0-99999999999", "0-4096", "1,,2"}) {
    EXPECT_EQ(ParseNumberList(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace devmgr
