// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace devmgrd {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, IsReadInItsForms) {
  for (const auto& [text, read] :
       {std::pair("127.0.0.1:9510", "127.0.0.1:9510"),
        std::pair("0.0.0.0:65535", "0.0.0.0:65535"),
        std::pair(":9510", "127.0.0.1:9510"),
        std::pair("9510", "127.0.0.1:9510"), std::pair("0", "127.0.0.1:0"),
        std::pair("localhost:1", "127.0.0.1:1")}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), read) << text;
  }
}

TEST(ListenAddress, WhatIsNoneIsRefusedWithItsText) {
  for (const char* text :
       {"", ":", "localhost", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
        "127.0.0.1:-1", "127.0.0.1:80s", "127.0.0.1:80,81", "127.1:80",
        "example.com:80", "::1:80", "[::1]:80", "[127.0.0.1]:80", "+80",
        " 80"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(devmgr::MessageOf(address.status()),
                HasSubstr("\"" + std::string(text) + "\" is no address"));
  }
}

TEST(ListenAddress, ForeignTextIsQuotedPlainlyAndShort) {
  const auto address = ParseListenAddress("\x01\xff" + std::string(1000, 'x'));
  const std::string message = devmgr::MessageOf(address.status());
  EXPECT_THAT(message, HasSubstr("\\u0001"));
  EXPECT_LT(message.size(), 300u);
}

}  // namespace
}  // namespace devmgrd
