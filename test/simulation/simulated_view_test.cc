// SPDX-License-Identifier: Apache-2.0
//
// Nodes other than the present one, and the present one without some pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "simulation/moment_bed.h"

namespace devmgr::simulation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr auto kAdmits = Verdict::Kind::kAdmit;
constexpr auto kWaits = Verdict::Kind::kWait;

using SimulatedViewTest = SimulationTest;

TEST_F(SimulatedViewTest, AL178WithoutAPodItsDevicesAreFree) {
  Add(std::string(kClass) + Slice("n1", 2));
  Run(GpuPod("p1", 1));
  Run(GpuPod("p2", 1));
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kWaits);
  request_.view.minus = {{"default", "p1"}};
  const SimulatedPod pod = TryOne(GpuPod("p", 1));
  ASSERT_EQ(pod.verdict.kind, kAdmits) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0"));
}

TEST_F(SimulatedViewTest, AL178AClaimThatAnotherPodSharesStaysHeld) {
  Add(std::string(kClass) + Slice("n1", 1) + Claim("shared"));
  Run(PodText("p1", "", "shared"));
  Run(PodText("p2", "", "shared"));
  request_.view.minus = {{"default", "p1"}};
  const SimulatedPod pod = TryOne(GpuPod("p", 1));
  EXPECT_EQ(pod.verdict.kind, kWaits);
  ASSERT_THAT(pod.refusals, SizeIs(1));
  ASSERT_THAT(pod.refusals[0].devices, SizeIs(1));
  EXPECT_EQ(pod.refusals[0].devices[0].reason, "busy");
  EXPECT_EQ(pod.refusals[0].devices[0].detail, "pod default/p2");
  request_.view.minus.push_back({"default", "p2"});
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kAdmits);
}

TEST_F(SimulatedViewTest, AL178DevicesOfPluginsAreFreeToo) {
  AddPlugin(kNic, 1);
  Run(PodText("p1", "example.com/nic: 1"));
  EXPECT_EQ(TryOne(PodText("p", "example.com/nic: 1")).verdict.kind, kWaits);
  request_.view.minus = {{"default", "p1"}};
  EXPECT_EQ(TryOne(PodText("p", "example.com/nic: 1")).verdict.kind, kAdmits);
}

TEST_F(SimulatedViewTest, AL178WhatAnotherPartyReservedIsFreeWithItsPod) {
  Add(std::string(kClass) + Slice("n1", 1) + Claim("c"));
  ResourceClaim claim = *moment_.objects.claims.at({"default", "c"});
  claim.status.allocation.emplace();
  auto& result = claim.status.allocation->results.emplace_back();
  result.request = "r";
  result.driver = kDriver;
  result.pool = "n1";
  result.device = "g0";
  claim.status.reserved_for.push_back({"", "pods", "p1", "u-p1"});
  const auto allocated = std::make_shared<const ResourceClaim>(claim);
  auto holder = std::make_shared<Pod>(OnePod(PodText("p1", "", "c")));
  holder->metadata.uid = "u-p1";
  for (ObjectSnapshot* objects : {&moment_.objects, &moment_.of_source}) {
    objects->claims.insert_or_assign({"default", "c"}, allocated);
    objects->pods.insert_or_assign({"default", "p1"}, holder);
  }
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kWaits);
  request_.view.minus = {{"default", "p1"}};
  EXPECT_EQ(TryOne(GpuPod("p", 1)).verdict.kind, kAdmits);
}

TEST_F(SimulatedViewTest, AL179AHypotheticalNodeHasWhatIsSaidAndNothingElse) {
  Add(std::string(kClass) + Slice("n1", 4) + Claim("c"));
  AddPlugin(kNic, 4);
  request_.view.base = SimulationBase::kEmpty;
  request_.view.node_name = "n9";
  for (const Object& object :
       Decoded(Slice("a", 1, "nodeName: n9") + Slice("b", 1, "nodeName: n9"))) {
    request_.view.slices.push_back(std::get<ResourceSlice>(object));
  }
  request_.view.plugins = {{ResourceName("example.com/r"), 4, {{0, 2}}}};
  for (const Object& object : Decoded(Claim("c"))) {
    request_.claims.push_back(std::get<ResourceClaim>(object));
  }
  auto result = Try(PodText("p", "example.com/r: 3", "c") + GpuPod("q", 1) +
                    GpuPod("s", 1) + PodText("t", "example.com/r: 2") +
                    PodText("u", "example.com/nic: 1"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->node_name, "n9");
  ASSERT_THAT(result->pods, SizeIs(5));
  EXPECT_EQ(result->pods[0].verdict.kind, kAdmits)
      << result->pods[0].verdict.message;
  EXPECT_THAT(DevicesOf(result->pods[0]), ElementsAre("a/g0"));
  EXPECT_THAT(result->pods[0].containers, SizeIs(1));
  EXPECT_THAT(DevicesOf(result->pods[1]), ElementsAre("b/g0"));
  EXPECT_EQ(result->pods[2].verdict.kind, kWaits);
  EXPECT_EQ(result->pods[3].verdict.reason, "NotEnoughFreeDevices");
  EXPECT_EQ(result->pods[4].verdict.kind, kWaits);
  EXPECT_EQ(result->pods[4].verdict.reason, "ExtendedResourceNotMapped");
}

TEST_F(SimulatedViewTest, AL180ANodeLikeThisOneHasItsLocalDevicesOnceMore) {
  Add(std::string(kClass) + Slice("p", 2) + Slice("q", 2, "allNodes: true"));
  AddPlugin(kNic, 1);
  Run(PodText("a", "example.com/gpu: 3, example.com/nic: 1"));
  EXPECT_EQ(TryOne(GpuPod("t", 2)).verdict.kind, kWaits);
  request_.view.base = SimulationBase::kLikeNode;
  request_.view.node_name = "n9";
  const SimulatedPod local =
      TryOne(PodText("t", "example.com/gpu: 3, example.com/nic: 1"));
  ASSERT_EQ(local.verdict.kind, kAdmits) << local.verdict.message;
  EXPECT_THAT(DevicesOf(local), ElementsAre("n9/p/g0", "n9/p/g1", "q/g1"));
  EXPECT_THAT(local.containers, SizeIs(1));
  const SimulatedPod many = TryOne(GpuPod("t", 4));
  EXPECT_EQ(many.verdict.kind, kWaits);
  // A pod of this node's name is another one there.
  EXPECT_EQ(TryOne(GpuPod("a", 1)).verdict.kind, kAdmits);
}

TEST_F(SimulatedViewTest, AL180APoolNamedAfterTheNodeIsNamedAfterTheOther) {
  Add(std::string(kClass) + Slice("n1", 1));
  Run(GpuPod("a", 1));
  request_.view.base = SimulationBase::kLikeNode;
  request_.view.node_name = "n9";
  EXPECT_THAT(DevicesOf(TryOne(GpuPod("t", 1))), ElementsAre("n9/g0"));
}

TEST_F(SimulatedViewTest, WhatARequestBringsIsOnTopOfThePresentNode) {
  Add(std::string(kClass) + Slice("n1", 1));
  EXPECT_EQ(TryOne(GpuPod("p", 3)).verdict.kind, kWaits);
  for (const Object& object : Decoded(Slice("more", 2))) {
    request_.view.slices.push_back(std::get<ResourceSlice>(object));
  }
  EXPECT_EQ(TryOne(GpuPod("p", 3)).verdict.kind, kAdmits);
  request_.view.plugins = {{ResourceName(kNic), 2, {}}};
  EXPECT_EQ(TryOne(PodText("p", "example.com/nic: 2")).verdict.kind, kAdmits);
}

}  // namespace
}  // namespace devmgr::simulation
