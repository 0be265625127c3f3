// SPDX-License-Identifier: Apache-2.0
#include "api/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::api {
namespace {

TEST(ReadableTest, KeepsTextOfPeople) {
  EXPECT_EQ(Readable("", 9), "");
  EXPECT_EQ(Readable("zwölf €\n\tund 𝄞", 99), "zwölf €\n\tund 𝄞");
}

TEST(ReadableTest, ReplacesWhatIsNoTextOrDrivesATerminal) {
  EXPECT_EQ(Readable(std::string("a\0b\r\x1b[1m\x7f", 9), 99), "a?b??[1m?");
  EXPECT_EQ(Readable("a\xff\xdd", 99), "a??");
  EXPECT_EQ(Readable("a\xc2\x9b!\xc2\xa0!", 99), "a?!\xc2\xa0!");  // C1 or not
}

TEST(ReadableTest, CutsAtACharactersBorder) {
  EXPECT_EQ(Readable("12345", 5), "12345");
  EXPECT_EQ(Readable("123456", 5), "12345...");
  EXPECT_EQ(Readable("1234€", 5), "1234...");
  EXPECT_EQ(Readable(std::string(1'000, '\xff'), 2), "??...");
}

TEST(HasControlCharactersTest, KnowsThoseOfAscii) {
  for (const char* text : {"a\nb", "\t", "\x7f", "\x1b[1m", "\r"}) {
    EXPECT_TRUE(HasControlCharacters(text));
  }
  EXPECT_TRUE(HasControlCharacters(std::string_view("\0", 1)));
  for (const char* text : {"", "a b", "zwölf €", "\xff"}) {
    EXPECT_FALSE(HasControlCharacters(text)) << text;
  }
}

}  // namespace
}  // namespace devmgr::api
