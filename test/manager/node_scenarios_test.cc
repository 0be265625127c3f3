// SPDX-License-Identifier: Apache-2.0
//
// What drivers and nodes are known to do, on a whole node: restarts in the
// middle of calls, drivers that hang, what the pod's status tells.
#include <algorithm>

#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NodeScenarioTest : public ManagerTest {
 protected:
  static std::string Objects() {
    return ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
           PodYaml("p", "u-p", {"c1"});
  }

  /// `container name device health` of all that the pod's status tells.
  std::vector<std::string> StatusOf(const std::string& pod) {
    std::vector<std::string> all;
    for (const auto& container : node_.PodNamed(pod).allocated_resources) {
      for (const ResourceStatus& resource : container.resources) {
        for (const ResourceHealth& device : resource.resources) {
          all.push_back(container.container.value + " " + resource.name + " " +
                        device.resource_id + " " +
                        std::string(device.health.name()));
        }
      }
    }
    return all;
  }
  ::testing::AssertionResult WaitForStatus(
      const std::string& pod,
      const ::testing::Matcher<const std::vector<std::string>&>& status) {
    return node_.WaitUntil("the status is told", [&] {
      return ::testing::Value(StatusOf(pod), status);
    });
  }
  void ReportHealthy(const std::string& device) {
    node_.drivers.ReportHealth(
        kDriver, {{{"pool-1", device}, device::Health::kHealthy, "", 600'000}});
  }
};

/// The devices of a claim that its driver does without calls for.
std::string WithSkips(std::string claim) {
  const std::string device = "device: dev-1}";
  const auto at = claim.find(device);
  return claim.replace(at, device.size(),
                       "device: dev-1, skipNodeOperations: ['*']}");
}

// DRA-111: the ledger says nothing of skipped calls, whatever the claim says
// by now.
TEST_F(NodeScenarioTest, WhatWasBookedWithoutTheSettingIsUnpreparedByACall) {
  node_.Start();
  node_.Publish(Objects());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
  node_.options.feature_gates["DRAOptionalNodeOperations"] = true;
  node_.Publish(WithSkips(Objects()));
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
}

// DRA-162: the status names no claim, the spec does.
TEST_F(NodeScenarioTest, AClaimThatOnlyTheSpecNamesIsInTheStatus) {
  node_.drivers.Prepares("c1", {{{}, "pool-1", "dev-1", {}, ""}});
  node_.Start();
  node_.Publish(
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers: [{name: c, resources: {claims: [{name: gpu}]}}]\n"
      "  resourceClaims: [{name: gpu, resourceClaimName: c1}]\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ReportHealthy("dev-1");
  EXPECT_TRUE(WaitForStatus(
      "p", ElementsAre("c claim:gpu d.example.com/pool-1/dev-1 Healthy")));
}

// DRA-165
TEST_F(NodeScenarioTest, DevicesOfPluginsStayInTheStatusBesideClaims) {
  node_.drivers.Prepares("c1", {{{}, "pool-1", "dev-1", {}, ""}});
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers: [{name: c, resources: {limits: {example.com/gpu: 1}, "
      "claims: [{name: c1}]}}]\n"
      "  resourceClaims: [{name: c1, resourceClaimName: c1}]\n";
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_TRUE(WaitForStatus(
      "p", ElementsAre("c claim:c1 d.example.com/pool-1/dev-1 Unknown",
                       "c example.com/gpu 0 Healthy")));
  ReportHealthy("dev-1");
  EXPECT_TRUE(WaitForStatus(
      "p", ElementsAre("c claim:c1 d.example.com/pool-1/dev-1 Healthy",
                       "c example.com/gpu 0 Healthy")));
}

// DRA-169
TEST_F(NodeScenarioTest, APodThatCameWhileTheManagerWasDownRuns) {
  node_.Start();
  node_.Stop();
  node_.Publish(Objects());
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
}

// DRA-170: however often its driver is too slow, the pod does not fail.
TEST_F(NodeScenarioTest, APodWhoseDriverHangsStaysPending) {
  node_.drivers.Hold(kDriver);
  node_.drivers.Answer(kDriver, [](bool, const dra::ClaimReference&) {
    return absl::DeadlineExceededError("NodePrepareResources: no answer");
  });
  node_.Start();
  node_.Publish(Objects());
  for (std::size_t call = 1; call <= 5; ++call) {
    ASSERT_TRUE(node_.drivers.WaitForCalls(call));
    EXPECT_EQ(node_.PodNamed("p").state, PodState::kPreparing);
    node_.drivers.Let(kDriver);
    node_.drivers.Hold(kDriver);
  }
  node_.drivers.Answer(kDriver, nullptr);
  node_.drivers.Let(kDriver);
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
  for (const FakeDrivers::Call& call : node_.drivers.calls()) {
    EXPECT_TRUE(call.prepare);
  }
}

// DRA-171
TEST_F(NodeScenarioTest, ARestartDuringPrepareCallsAgain) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(Objects());
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.Restart();
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kDriver, {"c1"})));
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// DRA-171
TEST_F(NodeScenarioTest, ARestartDuringUnprepareCallsAgain) {
  node_.Start();
  node_.Publish(Objects());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.drivers.Hold(kDriver);
  node_.Publish("");
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  node_.Restart();
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Unprepare(kDriver, {"c1"}),
                          Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// DRA-174
TEST_F(NodeScenarioTest, EachNodeServesANameInItsOwnWay) {
  TestNode other;
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]\n";
  other.Start();
  other.plugins.Serve(kGpu, 1);
  other.Publish(pod);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + pod +
                "status:\n  extendedResourceClaimStatus:\n"
                "    resourceClaimName: c1\n    requestMappings:\n"
                "    - {containerName: c, resourceName: example.com/gpu, "
                "requestName: r}\n");
  ASSERT_TRUE(other.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto by_plugin =
      other.manager().View()->HeldDevices(PodUid{"u-p"}, "c");
  ASSERT_THAT(by_plugin, IsOk());
  EXPECT_EQ(by_plugin->size(), 1u);
  const auto by_claim = node_.manager().View()->HeldClaims(PodUid{"u-p"}, "c");
  ASSERT_THAT(by_claim, IsOk());
  EXPECT_EQ(by_claim->claims.size(), 1u);
  EXPECT_THAT(*node_.manager().View()->HeldDevices(PodUid{"u-p"}, "c"),
              IsEmpty());
  EXPECT_THAT(other.manager().View()->HeldClaims(PodUid{"u-p"}, "c")->claims,
              IsEmpty());
}

}  // namespace
}  // namespace devmgr
