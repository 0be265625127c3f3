// SPDX-License-Identifier: Apache-2.0
#include "cdi/json_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::cdi {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const JsonNode& node) {
  std::string text;
  node.AppendTo(&text);
  return text;
}

JsonNode Parsed(std::string_view text) {
  auto node = JsonNode::Parse(text);
  EXPECT_THAT(node, IsOk());
  return *std::move(node);
}

JsonNode New(const Json& json) { return *JsonNode::Make(json); }

TEST(JsonNodeTest, AppendsInTheStyleOfTheOthers) {
  const struct {
    const char* before;
    const char* after;
  } kCases[] = {
      {"[]", "[9]"},
      {"[1]", "[1,9]"},
      {"[ 1 ]", "[ 1, 9 ]"},
      {"[1, 2]", "[1, 2, 9]"},
      {"[\n  1,\n  2\n]", "[\n  1,\n  2,\n  9\n]"},
      {"[\n  1\n]", "[\n  1,\n  9\n]"},
  };
  for (const auto& c : kCases) {
    JsonNode node = Parsed(c.before);
    node.Append(New(9));
    EXPECT_EQ(TextOf(node), c.after);
  }
}

TEST(JsonNodeTest, ErasesAndKeepsTheShape) {
  const auto without = [](const char* text, std::size_t index) {
    JsonNode node = Parsed(text);
    node.Erase(index);
    return TextOf(node);
  };
  EXPECT_EQ(without("[\n 1, 2,\t3 ]", 0), "[\n 2,\t3 ]");
  EXPECT_EQ(without("[\n 1, 2,\t3 ]", 1), "[\n 1,\t3 ]");
  EXPECT_EQ(without("[\n 1, 2,\t3 ]", 2), "[\n 1, 2 ]");
  EXPECT_EQ(without("[1]", 0), "[]");
}

TEST(JsonNodeTest, PermutesValues) {
  JsonNode node = Parsed("[ 1,\n2, 3]");
  node.Permute({2, 0, 1});
  EXPECT_EQ(TextOf(node), "[ 3,\n1, 2]");
}

TEST(JsonNodeTest, FindsMembersHoweverTheyAreWritten) {
  JsonNode node = Parsed(R"({"a\u0062": 1, "n" : null})");
  ASSERT_THAT(node.Find("ab"), IsOk());
  EXPECT_EQ((*node.Find("ab"))->Read(), 1);
  EXPECT_EQ(*node.Find("n"), nullptr);
  EXPECT_EQ(*node.Find("x"), nullptr);
  ASSERT_THAT(node.List("n"), IsOk());
  ASSERT_THAT(node.Object("o"), IsOk());
  EXPECT_EQ(TextOf(node), R"({"a\u0062": 1, "n" : [], "o" : {}})");
}

TEST(JsonNodeTest, TakesNoMemberThatIsThereTwice) {
  JsonNode node = Parsed(R"({"a": 1, "b": 2, "\u0061": 3})");
  EXPECT_THAT(node.Find("a"), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("'a' is there twice")));
  EXPECT_THAT(node.Set("a", New(1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(node.Find("b"), IsOk());
}

TEST(JsonNodeTest, NewValuesSurviveTheirNeighbours) {
  JsonNode node = Parsed("{}");
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(node.Set(std::to_string(i), New(Json{{"k", {i}}})), IsOk());
  }
  JsonNode* first = *node.Find("0");
  (*first->List("k"))->Append(New("x"));
  EXPECT_THAT(TextOf(node),
              ::testing::StartsWith(R"({"0":{"k":[0,"x"]},"1":{"k":[1]},)"));
}

/// JSON of random shape and with random blanks.
class RandomJson {
 public:
  explicit RandomJson(Luck& luck) : luck_(luck) {}

  std::string Blanks() {
    static const std::vector<std::string> kBlanks = {"",  "",     "",
                                                     " ", "\n\t", "\r\n  "};
    return luck_.Pick(kBlanks);
  }

  std::string Value(int depth) {
    static const std::vector<std::string> kScalars = {
        "null",
        "true",
        "-0",
        "1.50e+3",
        "123456789012345678901234567890",
        "\"\"",
        "\"a]}\\\",[{\"",
        "\"\\u00e9\\\\\"",
        "\"\xC3\xA9\""};
    const auto kind = depth == 0 ? 2 : luck_.Below(4);
    if (kind >= 2) return luck_.Pick(kScalars);
    const bool is_object = kind == 1;
    std::string text = is_object ? "{" : "[";
    const auto count = luck_.Below(4);
    if (count == 0) text += Blanks();
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ",";
      text += Blanks();
      if (is_object) {
        text +=
            "\"k\\u006" + std::to_string(i) + "\"" + Blanks() + ":" + Blanks();
      }
      text += Value(depth - 1) + Blanks();
    }
    return text + (is_object ? "}" : "]");
  }

  /// Looks into a part of it.
  void Open(JsonNode& node) {
    if (!node.IsList() || luck_.Below(4) == 0) return;
    for (std::size_t i = 0; i < node.size(); ++i) Open(node[i]);
  }

 private:
  Luck& luck_;
};

TEST(JsonNodeTest, LookingChangesNothing) {
  LiveEach({1, 2'000}, [](Luck& luck) {
    RandomJson random(luck);
    const std::string text = random.Value(5);
    JsonNode node = Parsed(text);
    random.Open(node);
    if (node.IsObject()) {
      EXPECT_THAT(node.Find("absent"), IsOk());
    }
    ASSERT_EQ(TextOf(node), text);
  });
}

TEST(JsonNodeTest, AppendingIsWhatParsedValuesSay) {
  LiveEach({2, 2'000}, [](Luck& luck) {
    RandomJson random(luck);
    const std::string text = "[" + random.Value(3) + random.Blanks() + "]";
    JsonNode node = Parsed(text);
    node.Append(New({{"a", 1}}));
    Json expected = Json::parse(text);
    expected.push_back({{"a", 1}});
    ASSERT_EQ(Json::parse(TextOf(node)), expected) << text;
  });
}

}  // namespace
}  // namespace devmgr::cdi
