// SPDX-License-Identifier: Apache-2.0
#include "source/api/node_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "source/api/api_texts.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string NodeText(const std::string& uid) {
  return R"({"kind":"Node","metadata":{"name":"n1","uid":")" + uid + R"("}})";
}

class NodeReaderTest : public ::testing::Test {
 protected:
  bool Asks() {
    const auto request = reader.Next(now);
    if (!request) return false;
    EXPECT_EQ(request->target, "/api/v1/nodes/n1");
    return true;
  }
  void Answer(int code, const std::string& body) {
    reader.OnAnswer(now, {.code = code, .retry_after = {}}, body);
  }

  NodeReader::TimePoint now{std::chrono::hours(1)};
  NodeReader reader{"n1", [] { return 0.0; }};
};

TEST_F(NodeReaderTest, AsksOnlyWhenItIsAskedTo) {
  EXPECT_FALSE(Asks());
  reader.AskAgain(now);
  ASSERT_TRUE(Asks());
  EXPECT_FALSE(Asks());
  Answer(200, NodeText("u-n1"));
  EXPECT_EQ(reader.uid(), "u-n1");
  EXPECT_TRUE(reader.IsSettled());
  EXPECT_FALSE(Asks());
}

TEST_F(NodeReaderTest, IsInDoubtUntilTheNextAnswer) {
  reader.AskAgain(now);
  ASSERT_TRUE(Asks());
  // That answer may be older than the question.
  reader.AskAgain(now);
  Answer(200, NodeText("u-n1"));
  EXPECT_FALSE(reader.IsSettled());
  ASSERT_TRUE(Asks());
  Answer(200, NodeText("u-n2"));
  EXPECT_EQ(reader.uid(), "u-n2");
  EXPECT_TRUE(reader.IsSettled());
}

TEST_F(NodeReaderTest, LeavesItWhereTheServerDoesNotSay) {
  for (const int code : {403, 404}) {
    reader.AskAgain(now);
    ASSERT_TRUE(Asks());
    Answer(code, StatusText(code, "No", "may not"));
    EXPECT_TRUE(reader.IsSettled());
    EXPECT_EQ(reader.uid(), "");
    EXPECT_THAT(reader.last_error(), HasSubstr("may not"));
    EXPECT_FALSE(Asks());
  }
}

TEST_F(NodeReaderTest, AsksAgainAfterAFailure) {
  reader.AskAgain(now);
  ASSERT_TRUE(Asks());
  Answer(200, R"({"kind":"Pod","metadata":{"uid":"u"}})");
  EXPECT_FALSE(reader.IsSettled());
  EXPECT_EQ(reader.WakeAt(), now + milliseconds(800));
  now += milliseconds(800);
  ASSERT_TRUE(Asks());
  reader.OnFailure(now, "refused");
  EXPECT_EQ(reader.WakeAt(), now + milliseconds(1600));
  EXPECT_EQ(reader.last_error(), "/api/v1/nodes/n1: refused");
  now += milliseconds(1600);
  ASSERT_TRUE(Asks());
  Answer(401, "");
  EXPECT_TRUE(reader.TakeRefused());
  EXPECT_FALSE(reader.TakeRefused());
}

TEST_F(NodeReaderTest, TakesNoUidThatIsNone) {
  reader.AskAgain(now);
  ASSERT_TRUE(Asks());
  Answer(200, NodeText(std::string(200, 'a')));
  EXPECT_FALSE(reader.IsSettled());
  EXPECT_EQ(reader.uid(), "");
}

}  // namespace
}  // namespace devmgr::apiserver
