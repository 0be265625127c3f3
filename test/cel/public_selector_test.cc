// SPDX-License-Identifier: Apache-2.0
//
// devmgr/cel.h, with nothing but public headers.
#include <devmgr/cel.h>
#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

CelDevice Gpu(std::string_view model) {
  SliceDevice device;
  device.attributes["model"] = SharedText(model);
  device.attributes["versions"] =
      RareVector<DeviceVersion>{{"1.2.0"}, {"2.0.0"}};
  device.capacity["memory"].value = {1'073'741'824, 0, "1Gi"};
  device.allow_multiple_allocations = true;
  return CelDevice("gpu.example.com", device);
}

CelVerdict Judge(std::string_view expression, const CelLimits& limits = {}) {
  const auto selector = CelSelector::Compile(expression);
  if (!selector.ok()) return {selector.status(), 0};
  return selector->Evaluate(Gpu("A100"), limits);
}

TEST(CelSelectorTest, SeesAllPartsOfADevice) {
  for (const std::string_view expression :
       {"device.driver == 'gpu.example.com'",
        "device.attributes['gpu.example.com'].model == 'A100'",
        R"(device.attributes['gpu.example.com'].versions.exists(v,
             v.isGreaterThan(semver('1.9.0'))))",
        "device.capacity['gpu.example.com'].memory == quantity('1024Mi')",
        "device.allowMultipleAllocations"}) {
    const CelVerdict verdict = Judge(expression);
    ASSERT_THAT(verdict.matches, IsOk()) << expression;
    EXPECT_TRUE(*verdict.matches) << expression;
  }
}

TEST(CelSelectorTest, TellsWhereAnExpressionIsWrong) {
  CelProblem problem;
  const auto selector = CelSelector::Compile("true &&\n  nope", &problem);
  EXPECT_THAT(selector,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "2:3: undeclared reference to 'nope' (in container '')\n"
                       " |   nope\n | ..^"));
  EXPECT_EQ(problem.line, 2U);
  EXPECT_EQ(problem.column, 3U);
  EXPECT_EQ(problem.message,
            "undeclared reference to 'nope' (in container '')");
  EXPECT_EQ(problem.excerpt, " |   nope\n | ..^");
}

TEST(CelSelectorTest, HasNoPlaceForAWrongType) {
  CelProblem problem;
  const auto selector = CelSelector::Compile("1", &problem);
  EXPECT_THAT(selector,
              StatusIs(absl::StatusCode::kInvalidArgument, problem.message));
  EXPECT_THAT(problem.message, HasSubstr("must evaluate to bool"));
  EXPECT_EQ(problem.line, 0U);
  EXPECT_EQ(problem.excerpt, "");
}

TEST(CelSelectorTest, CountsTheCostAlsoOfAFailure) {
  const CelVerdict match = Judge("device.driver == 'x'");
  EXPECT_EQ(match.cost, 3U);
  const CelVerdict missing =
      Judge("device.attributes['gpu.example.com'].nope == 1");
  EXPECT_THAT(missing.matches, StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("no such key: nope")));
  EXPECT_GT(missing.cost, 0U);
  const auto selector = CelSelector::Compile("device.driver == 'x'");
  ASSERT_THAT(selector, IsOk());
  EXPECT_EQ(selector->text(), "device.driver == 'x'");
  EXPECT_GE(selector->worst_cost(), match.cost);
}

TEST(CelSelectorTest, EndsAtItsLimits) {
  CelLimits limits;
  limits.cost = 100;
  const std::string loop = "lists.range(1000).all(x, x >= 0)";
  const CelVerdict expensive = Judge(loop, limits);
  EXPECT_THAT(expensive.matches,
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_GT(expensive.cost, limits.cost);
  const std::atomic<bool> interrupted = true;
  CelLimits interrupt;
  interrupt.interrupted = &interrupted;
  EXPECT_THAT(Judge(loop, interrupt).matches,
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(CelSelectorTest, CopiesShareWhatWasCompiled) {
  const CelDevice device = Gpu("A100");
  std::vector<std::thread> threads;
  std::atomic<int> matches = 0;
  {
    const auto selector = CelSelector::Compile(
        "device.attributes['gpu.example.com'].model.startsWith('A')");
    ASSERT_THAT(selector, IsOk());
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([copy = *selector, device, &matches] {
        for (int n = 0; n < 100; ++n) {
          if (*copy.Evaluate(device).matches) ++matches;
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(matches, 400);
}

TEST(CelSelector, HasTheVariablesOfV1alpha2) {
  SliceDevice device;
  device.name = "i1";
  device.attributes["model"] = SharedText("m");
  const std::string text = R"(attributes.string["model"] == "m")";
  EXPECT_FALSE(CelSelector::Compile(text).ok());
  CelProblem problem;
  EXPECT_FALSE(CelSelector::Compile("device.driver == 'a'", &problem,
                                    CelVariables::kV1alpha2)
                   .ok());
  EXPECT_EQ(problem.column, 1u);
  const auto selector =
      CelSelector::Compile(text, nullptr, CelVariables::kV1alpha2);
  ASSERT_TRUE(selector.ok()) << selector.status();
  const CelVerdict verdict =
      selector->Evaluate(CelDevice("a", device, CelVariables::kV1alpha2));
  ASSERT_TRUE(verdict.matches.ok()) << verdict.matches.status();
  EXPECT_TRUE(*verdict.matches);
  EXPECT_GT(verdict.cost, 0u);
  // A device is for the variables for which it was made.
  EXPECT_EQ(selector->Evaluate(CelDevice("a", device)).matches.status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CelSelector::Compile("true")
                ->Evaluate(CelDevice("a", device, CelVariables::kV1alpha2))
                .matches.status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace devmgr
