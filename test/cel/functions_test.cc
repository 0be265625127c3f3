// SPDX-License-Identifier: Apache-2.0
//
// Tests beside those of cel-spec: the functions of Kubernetes, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "cel/compiled.h"
#include "cel/evaluator.h"
#include "cel/nested_binds.h"
#include "cel/regex.h"

namespace devmgr::cel {
namespace {

/// The value of `text` as a literal. An error begins with `error: `, a problem
/// of the expression with `compile: `.
std::string Answer(const std::string& text,
                   const EvaluationOptions& options = {}) {
  const auto plan = PlanText(text, Environment());
  if (const auto* problem = std::get_if<Problem>(&plan)) {
    return "compile: " + problem->message;
  }
  return Describe(Evaluate(std::get<Plan>(plan), {}, options).value);
}

TEST(FunctionsTest, CalculateWithQuantities) {
  EXPECT_EQ(Answer("quantity('500m').add(quantity('500m')).isInteger()"),
            "true");
  EXPECT_EQ(Answer("quantity('1.5').isInteger()"), "false");
  EXPECT_EQ(Answer("quantity('1.5').asInteger()"),
            "error: cannot convert value to integer");
  EXPECT_EQ(Answer("quantity('1.5').asApproximateFloat()"), "1.5");
  EXPECT_EQ(Answer("quantity('2k').sub(1).asInteger()"), "1999");
  EXPECT_EQ(Answer("quantity('1Gi') == quantity('1024Mi')"), "true");
  EXPECT_EQ(Answer("quantity('x')"), "error: not a quantity: 'x'");
  EXPECT_EQ(Answer("isQuantity('1e3') && !isQuantity('1x')"), "true");
  EXPECT_EQ(Answer("[1, 0, 2].map(n, sign(quantity('1').sub(n)))"),
            "[0, 1, -1]");
}

TEST(FunctionsTest, OrderVersions) {
  EXPECT_EQ(Answer("semver('1.0.0-alpha').isLessThan(semver('1.0.0'))"),
            "true");
  EXPECT_EQ(Answer("semver('1.0.0-2').isLessThan(semver('1.0.0-10'))"), "true");
  EXPECT_EQ(Answer("semver('1.0.0-2').isLessThan(semver('1.0.0-a'))"), "true");
  EXPECT_EQ(Answer("semver('1.0.0+x') == semver('1.0.0+y')"), "true");
  EXPECT_EQ(Answer("semver('v01.2', true).compareTo(semver('1.2.0'))"), "0");
  EXPECT_EQ(Answer("isSemver('v1.2.3')"), "false");
  EXPECT_EQ(Answer("isSemver('1.2-rc', true)"), "false");
  EXPECT_EQ(Answer("semver('1.99999999999999999999.0')"),
            "error: not a semantic version: '1.99999999999999999999.0'");
}

TEST(FunctionsTest, FindPatterns) {
  EXPECT_EQ(Answer("'abc 123 def'.find('[0-9]+')"), "\"123\"");
  EXPECT_EQ(Answer("'abc'.find('[0-9]+')"), "\"\"");
  EXPECT_EQ(Answer("'a1b22'.findAll('[0-9]+')"), "[\"1\", \"22\"]");
  EXPECT_EQ(Answer("'a1b22c3'.findAll('[0-9]+', 2)"), "[\"1\", \"22\"]");
  EXPECT_EQ(Answer("'aab'.findAll('a*')"), "[\"aa\", \"\"]");
  EXPECT_EQ(Answer("'x'.matches('(')").substr(0, 35),
            "compile: invalid regular expression");
  EXPECT_EQ(Answer("'x'.matches('(' + '')").substr(0, 33),
            "error: invalid regular expression");
}

// RE2's own words have parts of the pattern in them.
TEST(FunctionsTest, WhatIsWrongWithAPatternCanBeRead) {
  const auto regex = CompileRegex(std::string_view("x(\0\1", 4));
  const std::string* const error = std::get_if<std::string>(&regex);
  ASSERT_NE(error, nullptr);
  for (const char c : *error) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20) << *error;
  }
}

TEST(FunctionsTest, LookAtLists) {
  EXPECT_EQ(Answer("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()"), "true");
  EXPECT_EQ(Answer("[1, 5, 3].max()"), "5");
  EXPECT_EQ(Answer("['b', 'a'].min()"), "\"a\"");
  EXPECT_EQ(Answer("[].map(x, 1).max()"), "error: max called on empty list");
  EXPECT_EQ(Answer("[1.5, 2.0].sum()"), "3.5");
  EXPECT_EQ(Answer("[9223372036854775807, 1].sum()"),
            "error: integer overflow");
  EXPECT_EQ(Answer("[duration('1s'), duration('2s')].sum() == "
                   "duration('3s')"),
            "true");
  EXPECT_EQ(Answer("[1, 2, 1].lastIndexOf(1)"), "2");
  EXPECT_EQ(Answer("[1, 2].includes(2) && !'ab'.includes('a')"), "true");
  EXPECT_EQ(Answer("['bb', 'a'].sortBy(s, s.size())"), "[\"a\", \"bb\"]");
}

TEST(FunctionsTest, FoldConversionsOfConstants) {
  EXPECT_EQ(Answer("int('x') == 1").substr(0, 31),
            "compile: type conversion error ");
  EXPECT_EQ(Answer("int('x' + '') == 1").substr(0, 29),
            "error: type conversion error ");
}

TEST(FunctionsTest, KeepValuesOfBindsApart) {
  EXPECT_EQ(Answer("cel.bind(a, [], [a + [1], a + [2]])"), "[[1], [2]]");
  EXPECT_EQ(Answer("[[1], [2]].map(l, l.map(x, x + 1))"), "[[2], [3]]");
}

TEST(FunctionsTest, DecideByOneSideOfAnd) {
  EXPECT_EQ(Answer("1 / 0 == 1 && false"), "false");
  EXPECT_EQ(Answer("1 / 0 == 1 || true"), "true");
  EXPECT_EQ(Answer("1 / 0 == 1 && true"), "error: division by zero");
  EXPECT_EQ(Answer("[0, 1].exists(x, 1 / x == 1)"), "true");
  EXPECT_EQ(Answer("[0, 1].all(x, 1 / x == 2)"), "false");
  EXPECT_EQ(Answer("[0, 1].exists_one(x, 1 / x == 1)"),
            "error: division by zero");
}

// Nested lists that share their parts have 2^60 elements, which a comparison
// would have to visit.
TEST(FunctionsTest, EndOnValuesThatShareTheirParts) {
  const auto twice = [](const std::string& last) {
    return "dyn([" + last + ", " + last + "])";
  };
  EvaluationOptions options;
  options.work_limit = 100'000;  // The default takes a while without -O2.
  EXPECT_EQ(Answer(NestedBinds("dyn([1])", twice, "v59 == v59"), options),
            "error: the evaluation was stopped");
  EXPECT_EQ(
      Answer(NestedBinds("dyn([1])", twice, "[v59].indexOf(v58)"), options),
      "error: the evaluation was stopped");
}

}  // namespace
}  // namespace devmgr::cel
