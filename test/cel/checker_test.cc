// SPDX-License-Identifier: Apache-2.0
#include "cel/checker.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "cel/compiled.h"
#include "cel/nested_binds.h"
#include "cel/source.h"

namespace devmgr::cel {
namespace {

using ::testing::HasSubstr;

Environment Example() {
  Environment environment;
  environment.variables["x"] = ParseType("int");
  environment.variables["d"] = ParseType("dyn");
  environment.variables["m"] = ParseType("map(string, list(int))");
  environment.variables["a.b"] = ParseType("string");
  return environment;
}

/// The type of `text`, or what is wrong with it.
std::string TypeOfText(const std::string& text,
                       const Environment& environment = Example()) {
  const auto checked = CheckText(text, environment);
  if (const auto* problem = std::get_if<Problem>(&checked)) {
    return Render(text, *problem);
  }
  const auto& expression = std::get<Checked>(checked);
  return Describe(expression.TypeAt(expression.ast.root));
}

TEST(CelCheckerTest, FindsTypes) {
  EXPECT_EQ(TypeOfText("x + 1"), "int");
  EXPECT_EQ(TypeOfText("m['k'].map(e, string(e))"), "list(string)");
  EXPECT_EQ(TypeOfText("m.k[0]"), "int");
  EXPECT_EQ(TypeOfText("m.?k"), "optional_type(list(int))");
  EXPECT_EQ(TypeOfText("m.?k[0].orValue(1)"), "int");
  EXPECT_EQ(TypeOfText("d.f[1].g"), "dyn");
  EXPECT_EQ(TypeOfText("[]"), "list(dyn)");
  EXPECT_EQ(TypeOfText("true ? [] : [1u]"), "list(uint)");
  EXPECT_EQ(TypeOfText("m.transformMap(k, v, v.size())"), "map(string, int)");
  EXPECT_EQ(TypeOfText("a.b"), "string");
  EXPECT_EQ(TypeOfText("type(x)"), "type(int)");
}

TEST(CelCheckerTest, SaysWhichTypesDoNotFit) {
  EXPECT_THAT(TypeOfText("1 + 'a'"),
              HasSubstr("1:3: found no matching overload for '_+_' applied to "
                        "'(int, string)'"));
  EXPECT_THAT(TypeOfText("x.size()"), HasSubstr("applied to 'int.()'"));
  EXPECT_THAT(TypeOfText("x && true"),
              HasSubstr("1:1: expected type 'bool' but found 'int'"));
  EXPECT_THAT(TypeOfText("x.f"),
              HasSubstr("type 'int' does not support field selection"));
  EXPECT_THAT(TypeOfText("x.all(e, true)"),
              HasSubstr("cannot be range of a comprehension"));
  EXPECT_THAT(TypeOfText("[1].all(e, e)"),
              HasSubstr("expected type 'bool' but found 'int'"));
}

TEST(CelCheckerTest, WantsElementsOfOneType) {
  EXPECT_THAT(TypeOfText("[1, 2u]"),
              HasSubstr("1:5: expected type 'int' but found 'uint'"));
  EXPECT_THAT(TypeOfText("{'a': 1, 'b': d}"),
              HasSubstr("expected type 'int' but found 'dyn'"));
  EXPECT_EQ(TypeOfText("'%d %s'.format([1, 'a'])"), "string");
  Environment mixed = Example();
  mixed.homogeneous_literals = false;
  EXPECT_EQ(TypeOfText("[1, 'a']", mixed), "list(dyn)");
}

TEST(CelCheckerTest, LooksUpNamesInTheContainerFirst) {
  Environment environment = Example();
  environment.container = "n.o";
  environment.variables["n.o.x"] = ParseType("bool");
  environment.variables["n.y"] = ParseType("uint");
  EXPECT_EQ(TypeOfText("x", environment), "bool");
  EXPECT_EQ(TypeOfText(".x", environment), "int");
  EXPECT_EQ(TypeOfText("y", environment), "uint");
  EXPECT_THAT(TypeOfText("z", environment),
              HasSubstr("undeclared reference to 'z' (in container 'n.o')"));
}

TEST(CelCheckerTest, HidesVariablesBehindThoseOfMacros) {
  EXPECT_EQ(TypeOfText("['s'].map(x, x)"), "list(string)");
  EXPECT_EQ(TypeOfText("['s'].map(x, .x)"), "list(int)");
}

// The type of each `v` has the type before it twice.
TEST(CelCheckerTest, BoundsTypes) {
  for (const std::string unknown : {"{1: 1}", "[]", "{}"}) {
    const std::string text = NestedBinds(
        unknown,
        [](const std::string& last) {
          return absl::StrCat("{", last, ": ", last, "}");
        },
        "v59");
    EXPECT_THAT(TypeOfText(text), HasSubstr("type")) << unknown;
  }
}

}  // namespace
}  // namespace devmgr::cel
