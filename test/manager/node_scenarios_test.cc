// SPDX-License-Identifier: Apache-2.0
//
// Drivers, claims and plugins of a whole node: what happens in between, while
// nobody looks, and side by side.
#include "device/device.h"
#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeScenarioTest : public ManagerTest {
 protected:
  static std::string PodWithClaim(const std::string& driver = kDriver) {
    return ClaimYaml("c1", "u-c1", {driver}, {"u-p"}) +
           PodYaml("p", "u-p", {"c1"});
  }
  /// `container resource device health` of all that a pod shows.
  std::vector<std::string> StatusOf(const std::string& pod) {
    std::vector<std::string> all;
    for (const auto& container : node_.PodNamed(pod).allocated_resources) {
      for (const ResourceStatus& resource : container.resources) {
        for (const ResourceHealth& device : resource.resources) {
          all.push_back(container.container + " " + resource.name + " " +
                        device.resource_id + " " + device.health);
        }
      }
    }
    return all;
  }
};

// DRA-162: nobody has told the pod's status of its claim.
TEST_F(NodeScenarioTest, ThePodsSpecIsEnoughToShowTheHealthOfItsClaim) {
  node_.Start();
  node_.Publish(PodWithClaim());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(StatusOf("p"),
              ElementsAre("c claim:c1 d.example.com/x=c1 Unknown"));
}

// DRA-165
TEST_F(NodeScenarioTest, PluginsAndDriversAreShownSideBySide) {
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(
      ClaimYaml("c1", "u-c1", {kDriver}, {"u-p"}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers:\n  - name: c\n    resources: {claims: [{name: c1}], "
      "limits: {example.com/gpu: \"1\"}}\n"
      "  resourceClaims: [{name: c1, resourceClaimName: c1}]\n---\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const std::vector<std::string> held = StatusOf("p");
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_THAT(held, testing::Contains("c claim:c1 d.example.com/x=c1 Unknown"));
  EXPECT_THAT(held, testing::Contains(
                        testing::AllOf(testing::HasSubstr("c example.com/gpu "),
                                       testing::HasSubstr(" Healthy"))));
  node_.drivers.ReportHealth(
      kDriver, {{{"pool-1", "dev-1"}, device::Health::kUnhealthy, "", 60'000}});
  ASSERT_TRUE(node_.WaitUntil("its health is shown",
                              [&] { return StatusOf("p") != held; }));
  EXPECT_THAT(StatusOf("p"),
              testing::Contains("c claim:c1 d.example.com/x=c1 Unhealthy"));
  EXPECT_THAT(StatusOf("p"),
              testing::Contains(testing::HasSubstr("c example.com/gpu ")));
}

// DRA-169
TEST_F(NodeScenarioTest, APodThatCameWhileNobodyRanIsServed) {
  node_.Start();
  node_.Stop();
  node_.Publish(PodWithClaim());
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
}

// DRA-170
TEST_F(NodeScenarioTest, APodWaitsForAsLongAsItsDriverTakes) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(PodWithClaim());
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  // Others come and go meanwhile.
  for (int i = 0; i < 3; ++i) {
    node_.Publish(PodWithClaim() + ClaimYaml("c2", "u-c2", {kOther}, {"u-q"}) +
                  PodYaml("q", "u-q", {"c2"}));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
    node_.Publish(PodWithClaim());
    ASSERT_TRUE(node_.WaitUntilGone("q"));
    EXPECT_EQ(node_.PodNamed("p").state, PodState::kPreparing);
  }
  const auto calls = node_.drivers.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), Prepare(kDriver, {"c1"})),
            1);
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// DRA-171
TEST_F(NodeScenarioTest, ACallThatARestartCutsIsMadeAgain) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(PodWithClaim());
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.Restart();
  ASSERT_TRUE(node_.drivers.WaitForCalls(2));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));

  node_.drivers.Hold(kDriver);
  node_.Publish("");
  ASSERT_TRUE(node_.drivers.WaitForCalls(3));
  node_.Restart();
  ASSERT_TRUE(node_.drivers.WaitForCalls(4));
  node_.drivers.Let(kDriver);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(
      node_.drivers.calls(),
      ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kDriver, {"c1"}),
                  Unprepare(kDriver, {"c1"}), Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

/// Pod `p` with one `example.com/gpu`; where a scheduler found it by a class,
/// with the claim that it made.
std::string GpuPod(bool by_claim) {
  const std::string pod = DevicePod("p", {{kGpu, 1}});
  if (!by_claim) return pod;
  return "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
         "metadata: {name: gpu}\n"
         "spec: {extendedResourceName: example.com/gpu}\n---\n" +
         ClaimYaml("p-gpu", "u-p-gpu", {kDriver}, {"u-p"}) +
         pod.substr(0, pod.rfind("---")) +
         "status:\n  extendedResourceClaimStatus:\n"
         "    resourceClaimName: p-gpu\n"
         "    requestMappings:\n    - {containerName: c, resourceName: "
         "example.com/gpu, requestName: r}\n---\n";
}

// DRA-174
TEST_F(NodeScenarioTest, EachNodeServesAResourceItsOwnWay) {
  TestNode other;
  other.Start();
  other.plugins.Serve(kGpu, 1);
  other.Publish(GpuPod(false));
  node_.Start();
  node_.Publish(GpuPod(true));

  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=p-gpu"));
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"p-gpu"})));

  ASSERT_TRUE(other.WaitFor("p", PodState::kReady));
  EXPECT_THAT(other.Resolve("p", "c"), ElementsAre("example.com/gpu=0"));
  EXPECT_THAT(other.plugins.calls(), SizeIs(1));
  EXPECT_THAT(other.drivers.calls(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
