// SPDX-License-Identifier: Apache-2.0
#include "allocator/amount.h"

#include <gtest/gtest.h>

#include <string>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

std::string Text(const std::string& amount, const std::string& like) {
  return ToQuantity(AmountOf(Q(amount)), Q(like)).text.str();
}

TEST(Amount, IsWrittenInTheUnitsOfAnother) {
  EXPECT_EQ(Text("1073741824", "1Ki"), "1Gi");
  EXPECT_EQ(Text("1073741824", "1"), "1073741824");
  EXPECT_EQ(Text("1536Mi", "1Gi"), "1536Mi");
  EXPECT_EQ(Text("1500", "1Gi"), "1500");
  EXPECT_EQ(Text("1500m", "1Gi"), "1500m");
  EXPECT_EQ(Text("2000m", "1m"), "2");
  EXPECT_EQ(Text("5000", "1"), "5k");
  EXPECT_EQ(Text("1n", "1"), "1n");
  EXPECT_EQ(Text("0", "1Gi"), "0");
}

TEST(Amount, ComesBackAsItWas) {
  for (const char* text : {"1", "500m", "1Gi", "9223372036854775807", "7u"}) {
    const Quantity quantity = Q(text);
    EXPECT_EQ(ToQuantity(AmountOf(quantity), quantity), quantity) << text;
  }
}

TEST(Amount, IsClampedAsAQuantity) {
  const Amount most = AmountOf(Q("9223372036854775807"));
  EXPECT_EQ(ToQuantity(most + most, Q("1")).text.str(), "9223372036854775807");
}

}  // namespace
}  // namespace devmgr::allocator
