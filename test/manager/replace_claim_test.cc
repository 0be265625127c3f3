// SPDX-License-Identifier: Apache-2.0
//
// Devices of claims that do not work, and that a container gets others for when
// it starts again (healthPolicy replace).
#include <fmt/format.h>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/health_names.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Class `gpu`, also by the name of an extended resource, and its devices.
std::string Devices(int count) {
  std::string devices;
  for (int i = 1; i <= count; ++i) devices += fmt::format("{{name: d{}}}, ", i);
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: "
      "gpu}}\nspec: {{extendedResourceName: example.com/gpu, selectors: "
      "[{{cel: {{expression: 'device.driver == \"d.example.com\"'}}}}]}}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s}}\nspec: {{driver: d.example.com, nodeName: node-1, pool: {{name: "
      "node-1, generation: 1, resourceSliceCount: 1}}, devices: [{}]}}\n---\n",
      devices);
}

/// Of the source; two containers share it, or one has it.
std::string ClaimPod(bool shared = false) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "q, uid: c-q}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, uid: u-p}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{{name: own, resourceClaimName: "
      "q}}]\n  containers: [{{name: c, resources: {{claims: [{{name: own}}]}}}}"
      "{}]\n---\n",
      shared ? ", {name: d, resources: {claims: [{name: own}]}}" : "");
}

class ReplaceClaimTest : public DeviceNodeTest {
 protected:
  ReplaceClaimTest() {
    node_.options.node_name = "node-1";
    node_.options.health.policies[kDriver] = HealthPolicy::kReplace;
    node_.drivers.Register(kDriver);
  }
  void Report(const std::string& device, device::Health health) {
    node_.drivers.ReportHealth(kDriver,
                               {{{"node-1", device}, health, "", 60'000}});
    node_.Sync();
  }
  /// What the driver answers for the claim.
  void Prepares(const std::string& device) {
    node_.drivers.Prepares(
        "q",
        {{{"r"}, "node-1", device, {"d.example.com/x=" + device}, "", {}}});
  }
  absl::Status BeforeStart() {
    return node_.manager().BeforeContainerStart(node_.UidOf("p"), "c");
  }
  /// Of the only claim of this node.
  std::vector<std::string> Allocated() {
    std::vector<std::string> devices;
    const state::State state = node_.store.Load();
    for (const auto& [uid, claim] : state.local_claims) {
      if (!claim->object->status.allocation.has_value()) continue;
      for (const auto& result : claim->object->status.allocation->results) {
        devices.push_back(result.device);
      }
    }
    return devices;
  }
  std::size_t Exchanges() {
    std::size_t count = 0;
    const auto history = node_.manager().maintenance().History(0);
    for (const DecisionInfo& decision : *history) {
      if (decision.kind == DecisionKind::kReplaced) ++count;
    }
    return count;
  }
  /// It starts, its device breaks, and it is to start again.
  void Break(const std::string& objects) {
    Prepares("d1");
    node_.Start();
    Report("d1", kGood);
    node_.Publish(objects);
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    ASSERT_THAT(BeforeStart(), IsOk());
    ASSERT_THAT(Allocated(), ElementsAre("d1"));
    const auto answer = node_.Resolve("p", "c");
    Report("d1", kBad);
    // It runs with it, and nothing changes.
    EXPECT_EQ(node_.Resolve("p", "c"), answer);
    EXPECT_THAT(answer, ElementsAre("d.example.com/x=d1"));
    EXPECT_THAT(Allocated(), ElementsAre("d1"));
    Prepares("d2");
  }
};

// AL-194
TEST_F(ReplaceClaimTest, AL194TheClaimIsAllocatedAndPreparedAnew) {
  Break(Devices(2) + ClaimPod());
  const std::size_t calls = node_.drivers.calls().size();
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("gets other devices")));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated(), ElementsAre("d2"));
  EXPECT_EQ(Exchanges(), 1U);
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_EQ(Exchanges(), 1U);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=d2"));
  auto after = node_.drivers.calls();
  after.erase(after.begin(),
              after.begin() + static_cast<std::ptrdiff_t>(calls));
  EXPECT_THAT(after, ElementsAre(FakeDrivers::Call{false, kDriver, {"q"}},
                                 FakeDrivers::Call{true, kDriver, {"q"}}));
  const state::State state = node_.store.Load();
  const state::ClaimRecord& claim = *state.FindClaim(ClaimUid{"c-q"});
  EXPECT_EQ(claim.drivers.at(kDriver).allocated[0].device, "d2");

  node_.Publish(Devices(2));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitUntil("free", [&] { return Allocated().empty(); }));
}

TEST_F(ReplaceClaimTest, WithoutAnotherDeviceItKeepsItsOwn) {
  Break(Devices(1) + ClaimPod());
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("there are no others for it")));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_THAT(Allocated(), ElementsAre("d1"));
  Report("d1", kGood);
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_EQ(Exchanges(), 0U);
}

TEST_F(ReplaceClaimTest, WhatAnotherContainerHasTooIsNotExchanged) {
  Break(Devices(2) + ClaimPod(/*shared=*/true));
  EXPECT_THAT(BeforeStart(), IsOk());
  EXPECT_THAT(Allocated(), ElementsAre("d1"));
  EXPECT_EQ(Exchanges(), 0U);
}

/// Killed after the decision, before any driver was called.
TEST_F(ReplaceClaimTest, ARestartGoesOnWithIt) {
  const std::string objects = Devices(2) + ClaimPod();
  Break(objects);
  node_.drivers.Hold(kDriver);
  EXPECT_THAT(BeforeStart(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Exchanges(), 1U);
  node_.Stop();
  node_.drivers.Let(kDriver);
  node_.Start();
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated(), ElementsAre("d2"));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=d2"));
  EXPECT_EQ(Exchanges(), 1U);
}

}  // namespace
}  // namespace devmgr
