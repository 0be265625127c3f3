// SPDX-License-Identifier: Apache-2.0
#include "apistore/selectors.h"

#include "apistore/bed.h"

namespace devmgr::apistore {
namespace {

class FieldSelectorTest : public ::testing::Test {
 protected:
  bool Matches(std::string_view selector, const Json& object,
               const char* resource = "resourceslices") {
    const auto parsed = FieldSelector::Parse(selector, *bed_.At(resource).type);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() && parsed->Matches(object);
  }
  std::string Error(std::string_view selector) {
    return std::string(
        FieldSelector::Parse(selector, *bed_.Slice().type).status().message());
  }
  Bed bed_;
};

TEST_F(FieldSelectorTest, AllTermsHaveToMatch) {
  const Json slice = Bed::SliceBody("s");
  EXPECT_TRUE(Matches("", slice));
  EXPECT_TRUE(Matches("spec.driver=gpu.example.com,spec.nodeName=n1", slice));
  EXPECT_TRUE(Matches("spec.driver==gpu.example.com", slice));
  EXPECT_FALSE(Matches("spec.driver=gpu.example.com,spec.nodeName=n2", slice));
  EXPECT_TRUE(Matches("spec.nodeName!=n2,metadata.name=s", slice));
  EXPECT_FALSE(Matches("spec.nodeName!=n1", slice));
}

TEST_F(FieldSelectorTest, AnEmptyValueMeansThatTheFieldIsNotSet) {
  EXPECT_FALSE(Matches("spec.nodeName=", Bed::SliceBody("s")));
  EXPECT_TRUE(Matches("spec.nodeName=", Bed::SliceBody("s", "d", "")));
}

TEST_F(FieldSelectorTest, ABooleanThatIsNotSetIsFalse) {
  EXPECT_TRUE(Matches("spec.unschedulable=false", Json::object(), "nodes"));
  EXPECT_TRUE(Matches("spec.unschedulable=true",
                      J(R"({"spec": {"unschedulable": true}})"), "nodes"));
}

TEST_F(FieldSelectorTest, EscapesStandForTheCharacterBehindThem) {
  EXPECT_TRUE(Matches(R"(metadata.name=a\,b\=c\\)",
                      J(R"({"metadata": {"name": "a,b=c\\"}})")));
}

TEST_F(FieldSelectorTest, RefusesOtherFieldsAndWhatIsNoSelector) {
  EXPECT_EQ(Error("spec.foo=1"), "field label not supported: spec.foo");
  EXPECT_EQ(Error("metadata.namespace=x"),
            "field label not supported: metadata.namespace");
  EXPECT_EQ(Error("spec.driver"),
            "invalid selector: 'spec.driver'; can't understand 'spec.driver'");
  EXPECT_NE(Error("spec.driver=a=b"), "");
  EXPECT_NE(Error(R"(spec.driver=a\)"), "");
  EXPECT_NE(Error(R"(spec.driver=a\b)"), "");
}

bool LabelsMatch(std::string_view selector, std::string_view labels) {
  const auto parsed = LabelSelector::Parse(selector);
  EXPECT_TRUE(parsed.ok()) << selector << ": " << parsed.status();
  return parsed.ok() &&
         parsed->Matches({{"metadata", {{"labels", J(labels)}}}});
}

TEST(LabelSelector, KnowsTheWholeGrammar) {
  const char* const labels = R"({"a": "1", "example.com/b": "x", "n": "7"})";
  for (const char* yes :
       {"", "a=1", "a==1", "a", "!c", "a!=2", "c!=1", "a in (1,2)",
        "a in ( 2 , 1 )", "c notin (1)", "a notin (2,3)", "n>6", "n < 8",
        "a=1,example.com/b=x,!c", "a in (1), n gt 6", "a,n lt 8"}) {
    EXPECT_TRUE(LabelsMatch(yes, labels)) << yes;
  }
  for (const char* no : {"a=2", "a!=1", "c", "!a", "c in (1,)", "a notin (1)",
                         "n>7", "n<7", "a=1,c", "c>1", "example.com/b>1"}) {
    EXPECT_FALSE(LabelsMatch(no, labels)) << no;
  }
}

TEST(LabelSelector, AnEmptyValueIsAValue) {
  EXPECT_TRUE(LabelsMatch("a=", R"({"a": ""})"));
  EXPECT_TRUE(LabelsMatch("a in (,b)", R"({"a": ""})"));
  EXPECT_FALSE(LabelsMatch("a=", R"({})"));
}

TEST(LabelSelector, RefusesWhatIsNone) {
  for (const char* bad :
       {"a b", "a in", "a in (1", "a in (1 2)", "=1", "a=1,", "a>x", "!", "!!a",
        "-a=1", "a=-1", "a notin 1", "a,,b", "a=1=2", "(a)"}) {
    EXPECT_FALSE(LabelSelector::Parse(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace devmgr::apistore
