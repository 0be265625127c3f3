// SPDX-License-Identifier: Apache-2.0
#include "source/api/source_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::apiserver {
namespace {

TEST(SourceMemory, ReadsWhatItWrote) {
  const SourceMemory memory{"n1", "501", "0d1e-u"};
  EXPECT_EQ(ParseMemory(FormatMemory(memory), "n1"), memory);
  EXPECT_EQ(ParseMemory(FormatMemory({"n1", "", ""}), "n1"),
            (SourceMemory{"n1", "", ""}));
}

TEST(SourceMemory, IsOfOneNode) {
  EXPECT_EQ(ParseMemory(FormatMemory({"n1", "501", "u"}), "n2"),
            (SourceMemory{"n2", "", ""}));
}

TEST(SourceMemory, HasNothingOfAFileThatIsNone) {
  const std::string texts[] = {
      "",
      "{",
      "[]",
      std::string(1000, '['),
      "nodeName: n1",
      R"({"nodeName":"n1","nodeUID":"a b","podsVersion":"1\n2"})",
      R"({"nodeName":"n1","nodeUID":7,"podsVersion":{"a":1}})"};
  for (const std::string& text : texts) {
    EXPECT_EQ(ParseMemory(text, "n1"), (SourceMemory{"n1", "", ""})) << text;
  }
}

TEST(SourceMemory, RemembersWordsOnly) {
  EXPECT_TRUE(CanBeRemembered("12345"));
  EXPECT_TRUE(CanBeRemembered("0d1e_A.b-c"));
  EXPECT_FALSE(CanBeRemembered("a\"b"));
  EXPECT_FALSE(CanBeRemembered(std::string(129, '1')));
}

}  // namespace
}  // namespace devmgr::apiserver
