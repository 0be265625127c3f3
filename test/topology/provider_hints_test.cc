// SPDX-License-Identifier: Apache-2.0
#include "topology/provider_hints.h"

#include <devmgr/objects.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "support/status_matchers.h"
#include "topology/masks.h"

namespace devmgr::topology {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

/// Answers what it was made with.
class CpuHints : public TopologyHintProvider {
 public:
  using Answer = absl::StatusOr<std::map<std::string, TopologyHintList>>;

  explicit CpuHints(Answer answer) : answer_(std::move(answer)) {}

  std::string_view name() const override { return "cpu"; }
  Answer HintsOf(const TopologyRequest& request) const override {
    asked_for_ = request.container;
    return answer_;
  }
  const ContainerName& asked_for() const { return asked_for_; }

 private:
  const Answer answer_;
  mutable ContainerName asked_for_;
};

auto Ask(const CpuHints& provider) {
  static const Pod pod;
  return HintsOfProvider(provider, {.pod = pod, .container = "app"},
                         FirstNodes(2));
}

TEST(ProviderHintsTest, AnAnswerIsTakenResourceByResource) {
  const CpuHints provider(
      {{{"cpu", {{P({0}), N({0, 1})}}}, {"memory", std::nullopt}}});
  const auto lists = Ask(provider);
  ASSERT_THAT(lists, IsOk());
  ASSERT_EQ(lists->size(), 2u);
  EXPECT_EQ(provider.asked_for(), "app");
  EXPECT_EQ(lists->at(0).provider, "cpu");
  EXPECT_EQ(lists->at(0).resource, "cpu");
  EXPECT_THAT(*lists->at(0).hints, ElementsAre(P({0}), N({0, 1})));
  EXPECT_EQ(lists->at(1).resource, "memory");
  EXPECT_EQ(lists->at(1).hints, std::nullopt);
}

TEST(ProviderHintsTest, AWrongAnswerNamesItsProvider) {
  EXPECT_THAT(Ask(CpuHints(UnavailableError("not yet"))),
              StatusIs(StatusCode::kUnavailable,
                       "topology hint provider 'cpu': not yet"));
  EXPECT_THAT(
      Ask(CpuHints({{{"cpu", {{P({0, 5})}}}}})),
      StatusIs(StatusCode::kInvalidArgument,
               "topology hint provider 'cpu', resource 'cpu': a hint names the "
               "NUMA nodes 0,5, and the machine has 0,1"));
  EXPECT_THAT(
      Ask(CpuHints({{{"cpu", {{P({})}}}}})),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("no NUMA nodes")));
  EXPECT_THAT(Ask(CpuHints({{{"cpu", std::vector<TopologyHint>(
                                         kMaxHintsOfProvider + 1, P({0}))}}})),
              StatusIs(StatusCode::kResourceExhausted));
}

TEST(ProviderHintsTest, NothingAndNothingPossibleStayApart) {
  EXPECT_EQ(ToResourceHints("device", "r", {}).hints, std::nullopt);
  const auto none =
      ToResourceHints("device", "r", {.hints = std::vector<Hint>()});
  ASSERT_TRUE(none.hints.has_value());
  EXPECT_TRUE(none.hints->empty());
}

TEST(ProviderHintsTest, HintsOfDevicesBecomeMasks) {
  const auto list = ToResourceHints(
      "device", "r",
      {.hints = {{{{1, 63}, true}, {{64}, true}}}, .truncated = false});
  EXPECT_THAT(*list.hints, ElementsAre(P({1, 63})));
  EXPECT_TRUE(list.truncated);
}

}  // namespace
}  // namespace devmgr::topology
