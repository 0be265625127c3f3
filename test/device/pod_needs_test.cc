// SPDX-License-Identifier: Apache-2.0
#include "device/pod_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/builders.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::Pair;
using Kind = ContainerKind;

Quantity Number(std::int64_t whole) { return {.whole = whole}; }

Container WithLimits(const std::string& name,
                     const std::map<std::string, std::int64_t>& limits,
                     const std::string& restart_policy = "") {
  Container container{.name = name, .restart_policy = restart_policy};
  for (const auto& [resource, count] : limits) {
    container.resources.limits[resource] = Number(count);
  }
  return container;
}

TEST(PodNeedsTest, ReadsLimitsInOrderOfStart) {
  Pod pod;
  pod.spec.init_containers = {
      WithLimits("init", {{"x.com/b", 1}, {"x.com/a", 2}}),
      WithLimits("sidecar", {{"x.com/a", 1}}, "Always")};
  pod.spec.containers = {
      WithLimits("app", {{"x.com/a", 3}, {"cpu", 2}, {"hugepages-2Mi", 1}})};
  pod.spec.containers[0].resources.requests["x.com/c"] = Number(1);
  EXPECT_THAT(NeedsOf(pod, true),
              ElementsAre(DeviceNeed{"init", Kind::kInit, "x.com/a", 2},
                          DeviceNeed{"init", Kind::kInit, "x.com/b", 1},
                          DeviceNeed{"sidecar", Kind::kSidecar, "x.com/a", 1},
                          DeviceNeed{"app", Kind::kApp, "x.com/a", 3}));
}

TEST(PodNeedsTest, LeavesOutWhatAClaimServes) {  // DP-075
  Pod pod = PodBuilder()
                .Container("app")
                .Container("other")
                .SpecialClaim("claim")
                .Maps("app", "x.com/a", "container-0-request-0");
  for (Container& container : pod.spec.containers) {
    container.resources.limits["x.com/a"] = Number(1);
  }
  EXPECT_THAT(NeedsOf(pod, true),
              ElementsAre(DeviceNeed{"other", Kind::kApp, "x.com/a", 1}));
  EXPECT_EQ(NeedsOf(pod, false).size(), 2u);
}

TEST(PodNeedsTest, ANegativeLimitIsNone) {
  Pod pod;
  pod.spec.containers = {WithLimits("app", {{"x.com/a", -1}})};
  EXPECT_EQ(NeedsOf(pod, true)[0].count, 0);
}

DeviceNeed Need(Kind kind, const std::string& resource, std::int64_t count) {
  return {"c", kind, resource, count};
}

TEST(PodNeedsTest, TheLargestInitContainerCounts) {  // DP-096
  EXPECT_THAT(EffectiveNeeds(
                  {Need(Kind::kInit, "gpu", 2), Need(Kind::kInit, "gpu", 2)}),
              ElementsAre(Pair("gpu", 2)));
}

TEST(PodNeedsTest, AppContainersAddUp) {  // DP-097
  EXPECT_THAT(
      EffectiveNeeds({Need(Kind::kInit, "gpu", 2), Need(Kind::kInit, "nic", 1),
                      Need(Kind::kApp, "gpu", 3), Need(Kind::kApp, "nic", 2),
                      Need(Kind::kApp, "gpu", 3), Need(Kind::kApp, "nic", 2)}),
      ElementsAre(Pair("gpu", 6), Pair("nic", 4)));
}

TEST(PodNeedsTest, TheMaximumIsPerResource) {  // DP-098
  EXPECT_THAT(
      EffectiveNeeds({Need(Kind::kInit, "gpu", 2), Need(Kind::kInit, "nic", 1),
                      Need(Kind::kInit, "gpu", 3), Need(Kind::kInit, "nic", 2),
                      Need(Kind::kApp, "gpu", 1), Need(Kind::kApp, "nic", 1),
                      Need(Kind::kApp, "gpu", 1)}),
      ElementsAre(Pair("gpu", 3), Pair("nic", 2)));
}

TEST(PodNeedsTest, SidecarsRunBesideLaterContainers) {
  EXPECT_THAT(EffectiveNeeds(
                  {Need(Kind::kInit, "gpu", 3), Need(Kind::kSidecar, "gpu", 1),
                   Need(Kind::kInit, "gpu", 4), Need(Kind::kApp, "gpu", 2)}),
              ElementsAre(Pair("gpu", 5)));
}

TEST(PodNeedsTest, HugeNumbersDoNotOverflow) {
  EXPECT_THAT(EffectiveNeeds({Need(Kind::kApp, "gpu", INT64_MAX),
                              Need(Kind::kApp, "gpu", INT64_MAX)}),
              ElementsAre(Pair("gpu", INT64_MAX)));
}

}  // namespace
}  // namespace devmgr::device
