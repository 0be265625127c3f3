// SPDX-License-Identifier: Apache-2.0
#include "api/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/tree_builder.h"
#include "api/value.h"

namespace devmgr::api {
namespace {

using ::testing::HasSubstr;
using Kind = Value::Kind;

ParsedText Parse(std::string_view text) { return ParseText(text, false); }

/// The value of `key` in the only document of `text`.
Value ValueIn(std::string_view text, std::string_view key = "k") {
  const ParsedText parsed = Parse(text);
  EXPECT_EQ(parsed.error, "") << text;
  if (parsed.documents.size() != 1) {
    ADD_FAILURE() << parsed.documents.size() << " documents in " << text;
    return {};
  }
  const Value* value = parsed.documents[0]->Find(key);
  return value == nullptr ? Value{} : *value;
}

TEST(Parser, FindsNothingInEmptyText) {
  for (const std::string_view text :
       {"", "  \n\t\n", "# only\n# comments\n", "---\n", "---\n---\n...\n",
        "\xEF\xBB\xBF", "~\n", "null"}) {
    const ParsedText parsed = Parse(text);
    EXPECT_EQ(parsed.error, "") << text;
    EXPECT_TRUE(parsed.documents.empty()) << text;
  }
}

TEST(Parser, ResolvesPlainScalarsAsKubernetesDoes) {
  const struct {
    const char* scalar;
    Kind kind;
    const char* text;
  } kCases[] = {
      {"1", Kind::kInteger, "1"},
      {"-12", Kind::kInteger, "-12"},
      {"0x1F", Kind::kInteger, "31"},
      {"0o17", Kind::kInteger, "15"},
      {"017", Kind::kInteger, "15"},
      {"0b11", Kind::kInteger, "3"},
      {"1_000", Kind::kInteger, "1000"},
      {"99999999999999999999", Kind::kInteger, "99999999999999999999"},
      {"1.5", Kind::kFloat, "1.5"},
      {"1e3", Kind::kFloat, "1e3"},
      {".5", Kind::kFloat, ".5"},
      {".inf", Kind::kFloat, ".inf"},
      {"true", Kind::kBool, "true"},
      {"yes", Kind::kBool, "true"},
      {"Off", Kind::kBool, "false"},
      {"n", Kind::kBool, "false"},
      {"null", Kind::kNull, ""},
      {"~", Kind::kNull, ""},
      {"", Kind::kNull, ""},
      {"1Gi", Kind::kString, "1Gi"},
      {"2026-01-31T12:00:00Z", Kind::kString, "2026-01-31T12:00:00Z"},
      {"1.2.3", Kind::kString, "1.2.3"},
      {"0x", Kind::kString, "0x"},
      {"08", Kind::kFloat, "08"},
      {"tRue", Kind::kString, "tRue"},
      {"gpu.example.com", Kind::kString, "gpu.example.com"},
      {"\"1\"", Kind::kString, "1"},
      {"'true'", Kind::kString, "true"},
      {"''", Kind::kString, ""},
      {"!!str 1", Kind::kString, "1"},
      {"!!int \"7\"", Kind::kInteger, "7"},
      {"!!bool yes", Kind::kBool, "true"},
      {"! 1", Kind::kString, "1"},
      {"!mine 1", Kind::kString, "1"},
  };
  for (const auto& c : kCases) {
    const Value value = ValueIn(std::string("k: ") + c.scalar + "\n");
    EXPECT_EQ(value.kind, c.kind) << c.scalar;
    if (c.kind == Kind::kBool) {
      EXPECT_EQ(value.flag, std::string_view(c.text) == "true") << c.scalar;
    } else if (c.kind != Kind::kNull) {
      EXPECT_EQ(value.text, c.text) << c.scalar;
    }
  }
}

TEST(Parser, RefusesTagsThatDoNotFit) {
  const ParsedText parsed = Parse("a: 1\nk: !!int x\n");
  EXPECT_THAT(parsed.error, HasSubstr("'!!int' does not fit 'x'"));
  EXPECT_EQ(parsed.error_line, 2);
}

TEST(Parser, KeepsTheLinesOfYaml) {
  const ParsedText parsed =
      Parse("# c\na:\n  b:\n  - x: 1\n    y: 2\n  -\n    z[1].w: 3\n");
  ASSERT_EQ(parsed.documents.size(), 1u);
  const Value& root = *parsed.documents[0];
  EXPECT_EQ(root.line, 2);
  EXPECT_EQ(LineAt(root, "a.b[0].x"), 4);
  EXPECT_EQ(LineAt(root, "a.b[0].y"), 5);
  EXPECT_EQ(LineAt(root, "a.b[1]"), 7);
  EXPECT_EQ(LineAt(root, "a.b[0].none.deeper"), 4);
  EXPECT_EQ(LineAt(root, "a.b[9].x"), 3);
  EXPECT_EQ(LineAt(root, "a.b[x]"), 3);
  EXPECT_EQ(LineAt(root, "none"), 2);
  EXPECT_EQ(LineAt(root, ""), 2);
  EXPECT_EQ(LineAt(root, "a[b"), 3);
}

TEST(Parser, KeepsTheLinesOfJson) {
  const ParsedText parsed =
      Parse("{\n\"a\": {\"b\": [\n1\n,\n2\n]},\n\"c\"\n:\n\"x\"}\n");
  ASSERT_EQ(parsed.documents.size(), 1u) << parsed.error;
  const Value& root = *parsed.documents[0];
  EXPECT_EQ(root.line, 1);
  EXPECT_EQ(LineAt(root, "a"), 2);
  EXPECT_EQ(LineAt(root, "a.b[0]"), 3);
  EXPECT_EQ(LineAt(root, "a.b[1]"), 5);
  EXPECT_EQ(LineAt(root, "c"), 7);
  EXPECT_EQ(root.Find("c")->line, 9);
}

TEST(Parser, ReadsJsonByItsOwnRules) {
  EXPECT_EQ(ValueIn(R"({"k": "a\/\u00e9\ud83d\ude00\n"})").text,
            "a/\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_EQ(ValueIn("{\t\"k\":\t1\t}").kind, Kind::kInteger);
  EXPECT_EQ(ValueIn("{\"k\":18446744073709551616}").text,
            "18446744073709551616");
  EXPECT_EQ(ValueIn("{\"k\":18446744073709551616}").kind, Kind::kInteger);
  EXPECT_EQ(ValueIn("{\"k\":-0.5e1}").text, "-0.5e1");
  EXPECT_EQ(ValueIn("{\"k\":\"yes\"}").kind, Kind::kString);
  EXPECT_EQ(ValueIn("{\"k\":false}").kind, Kind::kBool);
  EXPECT_TRUE(ValueIn("{\"k\":true}").flag);
  EXPECT_EQ(ValueIn("{\"k\":null}").kind, Kind::kNull);
}

TEST(Parser, ReadsSeveralJsonValues) {
  const ParsedText parsed = Parse("{\"a\":1}{\"a\":2}\n\n{\"a\":3}\n");
  EXPECT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.documents.size(), 3u);
  EXPECT_EQ(parsed.documents[2]->Find("a")->text, "3");
  EXPECT_EQ(parsed.documents[2]->line, 3);
}

TEST(Parser, FallsBackToYamlUnlessJsonIsAsked) {
  EXPECT_EQ(ValueIn("{k: 1}").kind, Kind::kInteger);
  EXPECT_EQ(ValueIn("{\"k\":1} # a comment\n").kind, Kind::kInteger);
  const ParsedText strict = ParseText("{\n\"k\": 1,\n}\n", true);
  EXPECT_THAT(strict.error, HasSubstr("not JSON"));
  EXPECT_EQ(strict.error_line, 3);
  EXPECT_TRUE(strict.documents.empty());
  EXPECT_NE(ParseText("k: 1\n", true).error, "");
}

// All of it used to be called YAML.
TEST(Parser, CallsBrokenJsonJsonAndBrokenYamlYaml) {
  for (const char* json :
       {"{", "{\"k\": 1", "{\n  \"k\": [1, 2\n", "{\"a\": \"b\" \"c\": 1}"}) {
    EXPECT_THAT(ParseText(json, false).error, HasSubstr("not JSON")) << json;
  }
  EXPECT_EQ(ParseText("{\n  \"k\": [1,\n  \"x\": 2}\n", false).error_line, 3);
  for (const char* yaml : {"{k: [1, 2", "{k: \"1}\n", "k: [1, 2\n",
                           "{\"k\": 1}\n---\nk: [1, 2\n"}) {
    EXPECT_THAT(ParseText(yaml, false).error, HasSubstr("not YAML")) << yaml;
  }
}

TEST(Parser, RefusesDuplicateKeys) {
  const ParsedText yaml = Parse("a:\n  k: 1\n  j: 2\n  k: 3\n");
  EXPECT_THAT(yaml.error, HasSubstr("key 'k' is already there in line 2"));
  EXPECT_EQ(yaml.error_line, 4);
  EXPECT_THAT(Parse("kind: A\nkind: B\n").error, HasSubstr("'---'"));
  EXPECT_THAT(Parse("{\"k\":1,\"k\":2}").error, HasSubstr("already there"));
}

TEST(Parser, RefusesKeysThatAreNoStrings) {
  for (const char* text : {"? [a]\n: 1\n", "? {a: b}\n: 1\n", "~: 1\n"}) {
    EXPECT_THAT(Parse(text).error, HasSubstr("key must be a string")) << text;
  }
  EXPECT_EQ(ValueIn("1: a\n", "1").text, "a");
  EXPECT_EQ(ValueIn("y: a\n", "y").text, "a") << "a key means its text";
}

TEST(Parser, ExpandsAliases) {
  const ParsedText parsed = Parse("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n");
  ASSERT_EQ(parsed.documents.size(), 1u) << parsed.error;
  EXPECT_EQ(parsed.documents[0]->Find("c")->Find("b")->text, "1");
  EXPECT_EQ(parsed.documents[0]->Find("d")->items.size(), 2u);
  EXPECT_NE(Parse("a: &x 1\n---\nb: *x\n").error, "")
      << "anchors end with their document";
}

TEST(Parser, MergesMaps) {
  const ParsedText parsed = Parse(
      "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n"
      "one:\n  <<: *b\n  x: 9\nall:\n  <<: [*m, *b]\n\"<<\": text\n");
  ASSERT_EQ(parsed.documents.size(), 1u) << parsed.error;
  const Value& root = *parsed.documents[0];
  EXPECT_EQ(root.Find("one")->Find("x")->text, "9");
  EXPECT_EQ(root.Find("one")->Find("y")->text, "2");
  EXPECT_EQ(root.Find("all")->Find("y")->text, "3");
  EXPECT_EQ(root.Find("all")->Find("x")->text, "1");
  EXPECT_EQ(root.Find("<<")->text, "text") << "quoted, it is a key like any";
  EXPECT_THAT(Parse("<<: 1\n").error, HasSubstr("takes a map"));
}

TEST(Parser, RefusesAliasesOfThemselves) {
  EXPECT_THAT(Parse("a: &x [*x]\n").error, HasSubstr("contains it"));
  EXPECT_NE(Parse("a: *nowhere\n").error, "");
}

TEST(Parser, BoundsTheExpansionOfAliases) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += alias + ",";
    text += "]\n";
  }
  const ParsedText parsed = Parse(text);
  EXPECT_THAT(parsed.error, HasSubstr("too much content"));
  EXPECT_GT(parsed.error_line, 1);
}

TEST(Parser, BoundsAliasesOfLongText) {
  std::string text = "a: &a " + std::string(1 << 20, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) text += "*a,";
  EXPECT_THAT(Parse(text + "]\n").error, HasSubstr("too much content"));
}

TEST(Parser, BoundsTheDepthThatAliasesBuild) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
            (i == 0 ? "x" : "*a" + std::to_string(i - 1)) + "]\n";
  }
  EXPECT_THAT(Parse(text).error, HasSubstr("nested deeper than"));
}

TEST(Parser, BoundsNesting) {
  const std::string open(100'000, '[');
  std::string flow_maps;
  std::string indented;
  std::string json;
  for (int i = 0; i < 50'000; ++i) {
    flow_maps += "{a: ";
    json += "{\"a\":";
  }
  for (int i = 0; i < 2'000; ++i) {
    indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  }
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  for (const std::string& text :
       {open, flow_maps, indented, json, dashes, "k: " + open}) {
    const ParsedText parsed = Parse(text);
    EXPECT_THAT(parsed.error, HasSubstr("nested deeper than 100 levels"));
    EXPECT_TRUE(parsed.documents.empty());
  }
}

TEST(Parser, BoundsTheNumberOfValues) {
  std::string text = "[";
  for (int i = 0; i < 600'000; ++i) text += "a,";
  text += "]";
  EXPECT_THAT(Parse(text).error, HasSubstr("too much content"));
  EXPECT_THAT(ParseText("[" + std::string(4'000'000, ' ') + "]", true).error,
              "");
}

TEST(Parser, ItsErrorsHaveNoControlCharacters) {
  EXPECT_EQ(Parse("a: \"\\").error, "not YAML: unknown escape character: ?");
}

TEST(Parser, BoundsTheText) {
  const ParsedText parsed = Parse(std::string(kMaxTextBytes + 1, '#'));
  EXPECT_THAT(parsed.error, HasSubstr("8388609 bytes"));
  EXPECT_EQ(parsed.error_line, 0);
}

TEST(Parser, RefusesBytesThatAreNoText) {
  EXPECT_THAT(Parse("a: 1\nb: \xFF\n").error, HasSubstr("not UTF-8"));
  EXPECT_EQ(Parse("a: 1\nb: \xFF\n").error_line, 2);
  EXPECT_THAT(Parse(std::string_view("a: \0", 4)).error,
              HasSubstr("control character '\\x00'"));
  EXPECT_THAT(Parse(std::string_view("a\0:\0 \0", 6)).error,
              HasSubstr("control character"));
  EXPECT_NE(Parse("\xFF\xFE"
                  "a")
                .error,
            "")
      << "UTF-16";
}

// yaml-cpp reads two of them as one byte each.
TEST(Parser, ReadsEscapesAsUtf8) {
  EXPECT_EQ(ValueIn(R"(k: "\N\u00e9\N\_\xA0\L\\N")").text,
            "\xC2\x85\xC3\xA9\xC2\x85\xC2\xA0\xC2\xA0\xE2\x80\xA8\\N");
  EXPECT_EQ(ValueIn(R"("a\_": 1)", "a\xC2\xA0").text, "1");
}

TEST(Parser, TellsTheLineOfASyntaxError) {
  EXPECT_EQ(Parse("a: 1\nb: [1, 2\n").error_line, 3);
  const ParsedText tab = Parse("a:\n\tb: 1\n");
  EXPECT_NE(tab.error, "");
  EXPECT_EQ(tab.error_line, 2);
}

// yaml-cpp used to find empty documents there without end.
TEST(Parser, RefusesStrayMarksBetweenDocuments) {
  for (const char* text :
       {"a: 1\n}\n", "{a: 1}\n}\n", "{a: 1},\n", "]", ",", "{a: \"a\" b},"}) {
    const ParsedText parsed = Parse(text);
    EXPECT_THAT(parsed.error, HasSubstr("not YAML")) << text;
    EXPECT_THAT(parsed.documents, testing::IsEmpty()) << text;
  }
  EXPECT_EQ(Parse("a: 1\n}\n").error_line, 2);
  EXPECT_EQ(Parse("a: 1\n...\nb: 2\n---\n---\nc: 3\n").documents.size(), 3u);
}

TEST(Parser, ReadsTextWithAByteOrderMarkAndCarriageReturns) {
  EXPECT_EQ(ValueIn("\xEF\xBB\xBFk: a\r\nj: b\r\n").text, "a");
  EXPECT_EQ(ValueIn("\xEF\xBB\xBF{\"k\": \"a\"}").text, "a");
}

}  // namespace
}  // namespace devmgr::api
