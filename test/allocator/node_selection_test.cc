// SPDX-License-Identifier: Apache-2.0
#include "allocator/node_selection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace devmgr::allocator {
namespace {

Node MakeNode() {
  Node node;
  node.metadata.name = "n1";
  node.metadata.labels = {{"region", "r1"}, {"cores", "8"}, {"word", "many"}};
  return node;
}

bool MatchesLabel(const std::string& key, const std::string& op,
                  std::vector<std::string> values) {
  NodeSelector selector;
  selector.terms.push_back({.match_expressions = {{key, op, std::move(values)}},
                            .match_fields = {}});
  return Matches(selector, MakeNode());
}

bool MatchesField(const std::string& key, const std::string& op,
                  std::vector<std::string> values) {
  NodeSelector selector;
  selector.terms.push_back({.match_expressions = {},
                            .match_fields = {{key, op, std::move(values)}}});
  return Matches(selector, MakeNode());
}

TEST(NodeSelection, ComparesLabels) {
  EXPECT_TRUE(MatchesLabel("region", "In", {"r0", "r1"}));
  EXPECT_FALSE(MatchesLabel("region", "In", {"r0"}));
  EXPECT_FALSE(MatchesLabel("planet", "In", {""}));
  EXPECT_TRUE(MatchesLabel("region", "NotIn", {"r0"}));
  EXPECT_FALSE(MatchesLabel("region", "NotIn", {"r1"}));
  EXPECT_TRUE(MatchesLabel("planet", "NotIn", {"earth"}));
  EXPECT_TRUE(MatchesLabel("region", "Exists", {}));
  EXPECT_FALSE(MatchesLabel("planet", "Exists", {}));
  EXPECT_TRUE(MatchesLabel("planet", "DoesNotExist", {}));
  EXPECT_FALSE(MatchesLabel("region", "DoesNotExist", {}));
}

TEST(NodeSelection, ComparesNumbers) {
  EXPECT_TRUE(MatchesLabel("cores", "Gt", {"7"}));
  EXPECT_FALSE(MatchesLabel("cores", "Gt", {"8"}));
  EXPECT_TRUE(MatchesLabel("cores", "Lt", {"9"}));
  EXPECT_FALSE(MatchesLabel("cores", "Lt", {"8"}));
  EXPECT_FALSE(MatchesLabel("word", "Gt", {"1"}));
  EXPECT_FALSE(MatchesLabel("cores", "Gt", {"few"}));
  EXPECT_FALSE(MatchesLabel("cores", "Gt", {"1", "2"}));
  EXPECT_FALSE(MatchesLabel("planet", "Gt", {"1"}));
}

TEST(NodeSelection, ComparesTheNodesName) {
  EXPECT_TRUE(MatchesField("metadata.name", "In", {"n1"}));
  EXPECT_FALSE(MatchesField("metadata.name", "In", {"n2"}));
  EXPECT_TRUE(MatchesField("metadata.name", "NotIn", {"n2"}));
  EXPECT_FALSE(MatchesField("metadata.name", "NotIn", {"n1"}));
}

TEST(NodeSelection, MatchesNothingByWhatIsMalformed) {
  EXPECT_FALSE(MatchesLabel("region", "Like", {"r1"}));
  EXPECT_FALSE(MatchesLabel("region", "NotIn", {}));
  EXPECT_FALSE(MatchesLabel("region", "Exists", {"r1"}));
  EXPECT_FALSE(MatchesField("metadata.uid", "In", {"n1"}));
  EXPECT_FALSE(MatchesField("metadata.name", "In", {"n1", "n2"}));
  EXPECT_FALSE(MatchesField("metadata.name", "Exists", {}));
  NodeSelector empty;
  EXPECT_FALSE(Matches(empty, MakeNode()));
  empty.terms.push_back({});
  EXPECT_FALSE(Matches(empty, MakeNode()));
}

TEST(NodeSelection, NeedsAllRequirementsOfOneTerm) {
  NodeSelector selector;
  selector.terms.push_back({.match_expressions = {{"region", "Exists", {}},
                                                  {"planet", "Exists", {}}},
                            .match_fields = {}});
  EXPECT_FALSE(Matches(selector, MakeNode()));
  selector.terms.push_back({.match_expressions = {{"region", "Exists", {}}},
                            .match_fields = {{"metadata.name", "In", {"n1"}}}});
  EXPECT_TRUE(Matches(selector, MakeNode()));
  // A slice has one term.
  EXPECT_FALSE(Reaches(selector, MakeNode()));
}

TEST(NodeSelection, HasEachRequirementOnce) {
  ResourceSlice slice;
  slice.node_selector.emplace();
  slice.node_selector->terms.push_back(
      {.match_expressions = {{"region", "In", {"r1", "r2"}}},
       .match_fields = {}});
  NodeSelection nodes("n1");
  nodes.Add(slice, SliceDevice());
  ResourceSlice other = slice;
  NodeSelectorTerm term = slice.node_selector->terms[0];
  term.match_expressions[0].values = {"r2", "r1"};
  term.match_expressions.push_back({"region", "Exists", {}});
  other.node_selector->terms = {term};
  nodes.Add(other, SliceDevice());
  const auto selector = nodes.Selector();
  ASSERT_TRUE(selector);
  ASSERT_EQ(selector->terms.size(), 1U);
  EXPECT_EQ(selector->terms[0].match_expressions.size(), 2U);
  EXPECT_FALSE(nodes.IsOneNode());
}

}  // namespace
}  // namespace devmgr::allocator
