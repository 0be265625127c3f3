// SPDX-License-Identifier: Apache-2.0
//
// What the special claim of a pod gives to its containers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "claim/pod_plan.h"
#include "claim/resource_names.h"
#include "support/builders.h"

namespace devmgr::claim {
namespace {

using state::Want;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Verdict::Kind;

const ClaimUid kSpecial{"u-S"};

class ExtendedResourcePlanTest : public testing::Test {
 protected:
  /// Plans a pod whose special claim is `S`.
  PlanResult Plan(const Pod& pod) const {
    return PlanPod(pod, SnapshotOf({ClaimForP("S"), ClaimForP("C")}), options_);
  }

  /// What the pod's containers want; the pod must be admitted.
  std::vector<std::vector<Want>> WantsOf(const Pod& pod) const {
    const PlanResult result = Plan(pod);
    EXPECT_EQ(result.verdict.kind, Kind::kAdmit) << result.verdict.message;
    std::vector<std::vector<Want>> wants;
    for (const auto& need : result.plan.needs) wants.push_back(need.wants);
    return wants;
  }

  PlanOptions options_;
};

// DRA-073
TEST_F(ExtendedResourcePlanTest, TheSpecialClaimIsOneOfThePodsClaims) {
  const Pod pod =
      PodBuilder().Container("a").SpecialClaim("S").Claim("c1", "C");
  const PlanResult result = Plan(pod);
  ASSERT_EQ(result.plan.claims.size(), 2u);
  EXPECT_EQ(result.plan.claims[0].uid, ClaimUid{"u-C"});
  EXPECT_EQ(result.plan.claims[1].uid, kSpecial);
}

TEST_F(ExtendedResourcePlanTest, TheSpecialClaimNeedsNoOwnerButAReservation) {
  const Pod pod = PodBuilder().Container("a").SpecialClaim("S");
  EXPECT_EQ(PlanPod(pod, SnapshotOf({ClaimBuilder("S").From(kDriver)}), {})
                .verdict.reason,
            "ClaimNotReserved");
  EXPECT_EQ(PlanPod(pod, SnapshotOf({}), {}).verdict.reason, "ClaimNotFound");
}

// DRA-074
TEST_F(ExtendedResourcePlanTest, WithTheGateOffThereIsNoSpecialClaim) {
  options_.extended_resources = false;
  const Pod idle = PodBuilder().Container("a").SpecialClaim("S");
  EXPECT_THAT(Plan(idle).plan.claims, IsEmpty());
  EXPECT_THAT(WantsOf(idle), ElementsAre(IsEmpty()));

  const Pod pod =
      PodBuilder().Container("a").Requests(kGpu).SpecialClaim("S").Maps(
          "a", kGpu, "req-0");
  const PlanResult result = Plan(pod);
  EXPECT_THAT(result.plan.claims, IsEmpty());
  EXPECT_THAT(result.plan.needs[0].wants, IsEmpty());
  EXPECT_EQ(result.verdict.reason, "ExtendedResourceNotMapped");
}

// DRA-120
TEST_F(ExtendedResourcePlanTest, EachContainerWantsItsOwnRequest) {
  const Pod pod = PodBuilder()
                      .Container("c1")
                      .Requests(kGpu)
                      .Container("c2")
                      .Requests(kGpu)
                      .SpecialClaim("S")
                      .Maps("c1", kGpu, "req-0")
                      .Maps("c2", kGpu, "req-1");
  EXPECT_THAT(WantsOf(pod),
              ElementsAre(ElementsAre(Want{kSpecial, "req-0", kGpu}),
                          ElementsAre(Want{kSpecial, "req-1", kGpu})));
}

// DRA-118 for extended resources
TEST_F(ExtendedResourcePlanTest, InitContainersAreServedToo) {
  const Pod pod = PodBuilder()
                      .InitContainer("i")
                      .Requests(kGpu)
                      .Container("c")
                      .SpecialClaim("S")
                      .Maps("i", kGpu, "req-0");
  EXPECT_THAT(
      WantsOf(pod),
      ElementsAre(ElementsAre(Want{kSpecial, "req-0", kGpu}), IsEmpty()));
}

// DRA-121
TEST_F(ExtendedResourcePlanTest, TheImplicitNameOfAClassIsServed) {
  const std::string implicit = "deviceclass.resource.kubernetes.io/gpu";
  const Pod pod =
      PodBuilder().Container("a").Requests(implicit).SpecialClaim("S").Maps(
          "a", implicit, "req-0");
  EXPECT_THAT(WantsOf(pod),
              ElementsAre(ElementsAre(Want{kSpecial, "req-0", implicit})));
}

// DRA-122
TEST_F(ExtendedResourcePlanTest, TwoResourcesOfAContainerAreServed) {
  const Pod pod = PodBuilder()
                      .Container("a")
                      .Requests(kGpu)
                      .Requests(kNic, 2)
                      .SpecialClaim("S")
                      .Maps("a", kGpu, "req-0")
                      .Maps("a", kNic, "req-1");
  EXPECT_THAT(WantsOf(pod),
              ElementsAre(ElementsAre(Want{kSpecial, "req-0", kGpu},
                                      Want{kSpecial, "req-1", kNic})));
}

// DRA-123, BO-112
TEST_F(ExtendedResourcePlanTest, OneResourceMayBeMappedToTwoRequests) {
  const Pod pod = PodBuilder()
                      .Container("a")
                      .Requests(kGpu, 2)
                      .Container("b")
                      .Requests(kGpu)
                      .SpecialClaim("S")
                      .Maps("a", kGpu, "req-0")
                      .Maps("a", kGpu, "req-1")
                      .Maps("b", kGpu, "req-2");
  EXPECT_THAT(WantsOf(pod),
              ElementsAre(ElementsAre(Want{kSpecial, "req-0", kGpu},
                                      Want{kSpecial, "req-1", kGpu}),
                          ElementsAre(Want{kSpecial, "req-2", kGpu})));
}

// DRA-124, BO-113
TEST_F(ExtendedResourcePlanTest, AMappingOfAResourceOfQuantityZeroAddsNothing) {
  const Pod pod =
      PodBuilder().Container("a").Requests(kGpu, 0).SpecialClaim("S").Maps(
          "a", kGpu, "req-0");
  EXPECT_THAT(WantsOf(pod), ElementsAre(IsEmpty()));
}

// DRA-125
TEST_F(ExtendedResourcePlanTest, AMappingOfAnUnrequestedResourceAddsNothing) {
  const Pod pod =
      PodBuilder().Container("a").SpecialClaim("S").Maps("a", kGpu, "req-0");
  EXPECT_THAT(WantsOf(pod), ElementsAre(IsEmpty()));
}

TEST_F(ExtendedResourcePlanTest, AMappingOfAnotherContainerAddsNothing) {
  const Pod pod =
      PodBuilder().Container("a").Requests(kGpu).SpecialClaim("S").Maps(
          "b", kGpu, "req-0");
  EXPECT_EQ(Plan(pod).verdict.reason, "ExtendedResourceNotMapped");
}

TEST_F(ExtendedResourcePlanTest, AMappingOfANativeResourceAddsNothing) {
  const Pod pod =
      PodBuilder().Container("a").Requests("cpu").SpecialClaim("S").Maps(
          "a", "cpu", "req-0");
  EXPECT_THAT(WantsOf(pod), ElementsAre(IsEmpty()));
}

// DRA-126
TEST_F(ExtendedResourcePlanTest, TheSpecialClaimComesAfterThePodsOwn) {
  const Pod pod = PodBuilder()
                      .Claim("c1", "C")
                      .Container("a")
                      .Uses("c1", "r")
                      .Requests(kGpu)
                      .SpecialClaim("S")
                      .Maps("a", kGpu, "req-0");
  EXPECT_THAT(WantsOf(pod),
              ElementsAre(ElementsAre(Want{ClaimUid{"u-C"}, "r", "", "c1"},
                                      Want{kSpecial, "req-0", kGpu})));
}

TEST_F(ExtendedResourcePlanTest, WaitsForAResourceThatNoMappingCovers) {
  const Pod pod = PodBuilder()
                      .Container("a")
                      .Requests(kGpu)
                      .Requests(kNic)
                      .Requests("cpu")
                      .SpecialClaim("S")
                      .Maps("a", kGpu, "req-0");
  const PlanResult result = Plan(pod);
  EXPECT_EQ(result.verdict.kind, Kind::kWait);
  EXPECT_EQ(result.verdict.reason, "ExtendedResourceNotMapped");
  EXPECT_THAT(result.verdict.message, HasSubstr("'example.com/nic'"));
  EXPECT_THAT(result.verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kNic}));
}

TEST_F(ExtendedResourcePlanTest, WaitsForAResourceWithoutAnySpecialClaim) {
  const Pod pod = PodBuilder().InitContainer("i").Requests(kGpu);
  EXPECT_EQ(Plan(pod).verdict.reason, "ExtendedResourceNotMapped");
}

}  // namespace
}  // namespace devmgr::claim
