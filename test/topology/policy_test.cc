// SPDX-License-Identifier: Apache-2.0
#include "topology/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"

namespace devmgr::topology {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

TEST(TopologyPolicyTest, ReadsWhatTheKubeletReads) {
  const auto options = ParseOptions("single-numa-node", "pod",
                                    {{"prefer-closest-numa-nodes", "true"},
                                     {"max-allowable-numa-nodes", "34"}});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(*options, (Options{.policy = Policy::kSingleNumaNode,
                               .scope = Scope::kPod,
                               .prefer_closest = true,
                               .max_numa_nodes = 34}));
  for (const Policy policy :
       {Policy::kBestEffort, Policy::kRestricted, Policy::kSingleNumaNode}) {
    const auto read = ParseOptions(PolicyName(policy), "", {});
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, (Options{.policy = policy}));
  }
}

TEST(TopologyPolicyTest, NothingConfiguredIsNone) {
  const auto options = ParseOptions("", "", {});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(*options, Options{});
}

TEST(TopologyPolicyTest, UnderNoneNothingElseIsLookedAt) {
  const auto options = ParseOptions("none", "bar", {{"baz", "1"}});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(*options, Options{});
  EXPECT_THAT(CheckNodeCount(*options, 64), IsOk());
}

TEST(TopologyPolicyTest, EachMistakeIsQuoted) {  // BO-151
  EXPECT_THAT(ParseOptions("foo", "", {}),
              StatusIs(StatusCode::kInvalidArgument, "unknown policy: 'foo'"));
  EXPECT_THAT(ParseOptions("restricted", "bar", {}),
              StatusIs(StatusCode::kInvalidArgument, "unknown scope: 'bar'"));
  EXPECT_THAT(ParseOptions("restricted", "", {{"baz", "true"}}),
              StatusIs(StatusCode::kInvalidArgument,
                       "unknown Topology Manager Policy option: 'baz'"));
  EXPECT_THAT(
      ParseOptions("restricted", "", {{"max-allowable-numa-nodes", "7"}}),
      StatusIs(StatusCode::kInvalidArgument,
               "the minimum value of \"max-allowable-numa-nodes\" should not "
               "be less than 8, and it is 7"));
  EXPECT_THAT(CheckNodeCount({.policy = Policy::kBestEffort}, 9),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("unsupported on machines with more than 8 "
                                 "NUMA Nodes, and this machine has 9")));
  EXPECT_THAT(CheckNodeCount({.policy = Policy::kBestEffort}, 8), IsOk());
  EXPECT_THAT(
      CheckNodeCount({.policy = Policy::kRestricted, .max_numa_nodes = 34}, 34),
      IsOk());
}

TEST(TopologyPolicyTest, ValuesOfOptionsAreThoseOfGo) {
  for (const char* wrong : {"", "yes", "8.0", "0x10", " 8", "8 ",
                            "99999999999"
                            "9999999999"}) {
    EXPECT_THAT(
        ParseOptions("restricted", "", {{"max-allowable-numa-nodes", wrong}}),
        StatusIs(StatusCode::kInvalidArgument, HasSubstr("to integer")))
        << wrong;
    EXPECT_THAT(
        ParseOptions("restricted", "", {{"prefer-closest-numa-nodes", wrong}}),
        StatusIs(StatusCode::kInvalidArgument, HasSubstr("bad value")))
        << wrong;
  }
  const auto off =
      ParseOptions("restricted", "", {{"prefer-closest-numa-nodes", "F"}});
  ASSERT_THAT(off, IsOk());
  EXPECT_FALSE(off->prefer_closest);
}

}  // namespace
}  // namespace devmgr::topology
