// SPDX-License-Identifier: Apache-2.0
#include "source/api/json_view.h"

#include <gtest/gtest.h>

namespace devmgr::apiserver {
namespace {

TEST(JsonViewTest, FindsMembersAsTheyAreWritten) {
  constexpr char kText[] =
      R"( {"a" : {"b":"}"} , "list":[1,"]"],"n":-1.5e3,"s":"x\ty","t":true})";
  EXPECT_EQ(FindMember(kText, "a"), R"({"b":"}"})");
  EXPECT_EQ(FindMember(kText, "list"), R"([1,"]"])");
  EXPECT_EQ(FindMember(kText, "n"), "-1.5e3");
  EXPECT_EQ(FindMember(kText, "t"), "true");
  EXPECT_EQ(StringMember(kText, "s"), "x\ty");
  EXPECT_EQ(StringMember(kText, "n"), "");
  EXPECT_EQ(FindMember(kText, "b"), "");
}

TEST(JsonViewTest, TakesWhatWasReadOfATextThatIsCut) {
  EXPECT_EQ(FindMember(R"({"a":{"b":1)", "a"), R"({"b":1)");
  EXPECT_EQ(StringMember(R"({"a":"half)", "a"), "half");
  EXPECT_EQ(StringMember(R"({"a":"half\)", "a"), "half");
  for (const char* text :
       {"", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "[", "{,"}) {
    EXPECT_EQ(FindMember(text, "a"), "") << text;
  }
}

TEST(JsonViewTest, UnderstandsEscapes) {
  EXPECT_EQ(StringOf(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u00")"),
            "\"\\/\b\f\n\r\tA??");
}

TEST(JsonViewTest, DescribesObjectsAsFarAsTheyAreRead) {
  EXPECT_EQ(DescribeObject(
                R"({"kind":"Pod","metadata":{"name":"p","namespace":"ns"}})"),
            "Pod 'ns/p'");
  EXPECT_EQ(DescribeObject(R"({"metadata":{"name":"p)"), "object 'p'");
  EXPECT_EQ(DescribeObject(R"({"metadata":{)"),
            "an object without a readable name");
  EXPECT_EQ(DescribeObject(R"({"metadata":{"name":"a\nb"}})"),
            R"(object 'a\x0ab')");
}

}  // namespace
}  // namespace devmgr::apiserver
