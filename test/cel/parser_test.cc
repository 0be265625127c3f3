// SPDX-License-Identifier: Apache-2.0
#include "cel/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "cel/source.h"

namespace devmgr::cel {
namespace {

using ::testing::HasSubstr;

/// The rendered problem of `text`; empty when it has none.
std::string ProblemOf(const std::string& text) {
  const auto ast = Parse(text);
  const auto* problem = std::get_if<Problem>(&ast);
  return problem == nullptr ? "" : Render(text, *problem);
}

/// The subtree of `id`, with the names of functions in front of their operands.
std::string Tree(const Ast& ast, ExprId id) {
  const Expr& expr = ast[id];
  std::string parts;
  if (expr.target != kNoExpr) parts += Tree(ast, expr.target) + " ";
  for (const ExprId arg : expr.args) parts += Tree(ast, arg) + " ";
  if (!parts.empty()) parts.pop_back();
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return Describe(expr.literal);
    case ExprKind::kIdent:
      return expr.name;
    case ExprKind::kSelect:
      return (expr.test_only ? "has(" : "") + parts + "." + expr.name +
             (expr.test_only ? ")" : "");
    case ExprKind::kCall:
      return expr.name + "(" + parts + ")";
    case ExprKind::kList:
      return "[" + parts + "]";
    case ExprKind::kMap:
      return "{" + parts + "}";
    case ExprKind::kFold:
      return "fold(" + expr.iter_var + ": " + parts + ")";
  }
  return "";
}

std::string TreeOf(const std::string& text) {
  const auto ast = Parse(text);
  const auto* problem = std::get_if<Problem>(&ast);
  if (problem != nullptr) return Render(text, *problem);
  return Tree(std::get<Ast>(ast), std::get<Ast>(ast).root);
}

TEST(CelParserTest, KnowsWhichOperatorsBindTighter) {
  EXPECT_EQ(TreeOf("1 + 2 * 3 - 4"), "_-_(_+_(1 _*_(2 3)) 4)");
  EXPECT_EQ(TreeOf("a || b && c == d"), "_||_(a _&&_(b _==_(c d)))");
  EXPECT_EQ(TreeOf("a ? b : c ? d : e"), "_?_:_(a b _?_:_(c d e))");
  EXPECT_EQ(TreeOf("!a.b[0].c(1)"), "!_(c(_[_](a.b 0) 1))");
  EXPECT_EQ(TreeOf("x in [1, 2,]"), "@in(x [1 2])");
}

TEST(CelParserTest, GivesASignToTheNumberBehindIt) {
  EXPECT_EQ(TreeOf("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(TreeOf("-1 - -1"), "_-_(-1 -1)");
  EXPECT_EQ(TreeOf("--1"), "1");
  EXPECT_EQ(TreeOf("-a"), "-_(a)");
  EXPECT_EQ(TreeOf("!!a"), "a");
  EXPECT_THAT(ProblemOf("9223372036854775808"),
              HasSubstr("1:1: invalid int literal"));
}

TEST(CelParserTest, ReadsOptionalSyntax) {
  EXPECT_EQ(TreeOf("a.?b[?c]"), "_[?_](_?._(a \"b\") c)");
  EXPECT_EQ(TreeOf("[?a, b]"), "[a b]");
  EXPECT_EQ(TreeOf("{?'k': a}"), "{\"k\" a}");
}

TEST(CelParserTest, ExpandsMacros) {
  EXPECT_EQ(TreeOf("has(a.b)"), "has(a.b)");
  EXPECT_EQ(TreeOf("l.all(x, x > 0)"),
            "fold(x: l true @not_strictly_false(@result) _&&_(@result _>_(x "
            "0)) @result)");
  EXPECT_EQ(TreeOf("cel.bind(x, 1, x + x)"),
            "fold(#unused: [] 1 false x _+_(x x))");
  // These calls only look like macros.
  EXPECT_EQ(TreeOf("m.bind(x, 1, x)"), "bind(m x 1 x)");
  EXPECT_EQ(TreeOf("l.all(x)"), "all(l x)");
}

TEST(CelParserTest, RefusesWrongArgumentsOfMacros) {
  EXPECT_THAT(ProblemOf("has(a)"), HasSubstr("invalid argument to has()"));
  EXPECT_THAT(ProblemOf("l.map(1, 2)"),
              HasSubstr("1:7: argument must be a simple name"));
  EXPECT_THAT(ProblemOf("l.exists(x, x, true)"),
              HasSubstr("duplicate variable name: 'x'"));
  EXPECT_THAT(ProblemOf("cel.bind(a.b, 1, 2)"),
              HasSubstr("simple identifiers"));
}

TEST(CelParserTest, ShowsThePlaceOfAProblem) {
  EXPECT_EQ(ProblemOf("a +\n  \"\u00e9\" ++"),
            "2:8: syntax error: unexpected '+', an expression is expected\n"
            " |   \"\u00e9\" ++\n"
            " | .......^");
  EXPECT_THAT(ProblemOf("(1"),
              HasSubstr("1:3: syntax error: the expression ends here, ')' is "
                        "expected"));
  EXPECT_THAT(ProblemOf("1 2"), HasSubstr("1:3: syntax error: unexpected '2'"));
  EXPECT_THAT(ProblemOf("'abc"), HasSubstr("the string has no end"));
  EXPECT_THAT(ProblemOf("'\\q'"), HasSubstr("invalid escape sequence"));
  EXPECT_THAT(ProblemOf("a # b"), HasSubstr("1:3: syntax error: unexpected"));
  EXPECT_THAT(ProblemOf("for"), HasSubstr("reserved identifier: for"));
  EXPECT_THAT(ProblemOf("a.b{c: 1}"), HasSubstr("messages are not supported"));
  EXPECT_THAT(ProblemOf("\xff"), HasSubstr("not UTF-8"));
}

TEST(CelParserTest, BoundsNesting) {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '(') + "1" +
           std::string(static_cast<std::size_t>(levels), ')');
  };
  EXPECT_EQ(ProblemOf(nested(249)), "");
  EXPECT_THAT(ProblemOf(nested(250)), HasSubstr("nested too deeply"));
  EXPECT_THAT(ProblemOf(nested(5000)), HasSubstr("nested too deeply"));
  for (const std::string repeated :
       {"[", "{", "-(", "!(", "a(", "a[", "a.b(", "a?", "has(", "l.map(x,"}) {
    std::string text;
    while (text.size() < 9000) text += repeated;
    EXPECT_NE(ProblemOf(text), "") << repeated;
  }
}

TEST(CelParserTest, BoundsOperatorsInARow) {
  std::string sum = "1";
  for (int i = 0; i < 249; ++i) sum += "+1";
  EXPECT_EQ(ProblemOf(sum), "");
  EXPECT_THAT(ProblemOf(sum + "+1+1"), HasSubstr("nested too deeply"));
  // Conditions are combined to a balanced tree.
  std::string conditions = "a";
  for (int i = 0; i < 2000; ++i) conditions += "&&a";
  EXPECT_EQ(ProblemOf(conditions), "");
}

TEST(CelParserTest, BoundsWhatMacrosCopy) {
  std::string text = "a";
  for (int i = 0; i < 100; ++i) text += ".optMap(x, x)";
  EXPECT_THAT(ProblemOf(text), HasSubstr("too large"));
}

}  // namespace
}  // namespace devmgr::cel
