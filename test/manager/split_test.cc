// SPDX-License-Identifier: Apache-2.0
//
// Devices of a plugin that are split between pods of a control plane and pods
// of this node: by their number.
#include <devmgr/simulation.h>
#include <fmt/format.h>

#include "manager/device_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A control plane has bound it to this node.
std::string BoundPod(const std::string& name, int count) {
  std::string text = DevicePod(name, {{kGpu, count}});
  const std::string from = "metadata: {";
  return text.replace(text.find(from), from.size(),
                      "metadata: {annotations: {kubernetes.io/config.source: "
                      "api}, ");
}

std::string LocalPod(const std::string& name, int count) {
  return DevicePod(name, {{kGpu, count}});
}

class SplitTest : public DeviceNodeTest {
 protected:
  SplitTest() {
    node_.options.policies.authority = Authority::kSplit;
    node_.options.policies.split_local[kGpu] = 2;
  }
  ResourceInfo Gpu() {
    for (const ResourceInfo& info : node_.manager().View()->Resources()) {
      if (info.name == kGpu) return info;
    }
    return {};
  }
};

TEST_F(SplitTest, AL145ByNumber) {
  node_.Start();
  node_.plugins.Serve(kGpu, 8);
  ASSERT_TRUE(node_.WaitUntil("devices", [&] { return Gpu().capacity == 8; }));
  EXPECT_EQ(Gpu().allocatable, 6);
  EXPECT_EQ(Gpu().local, 2);

  // It may have two, ever; and does not stand in the way of the others.
  node_.Publish(LocalPod("three", 3));
  ASSERT_TRUE(node_.WaitForReason("three", "NotEnoughFreeDevices"));
  EXPECT_THAT(node_.PodNamed("three").message,
              AllOf(HasSubstr("requests 3 devices, 2 of 2 devices left"),
                    HasSubstr("2 are for pods of this node, the others for "
                              "pods of the scheduler")));
  node_.Publish(LocalPod("three", 3) + BoundPod("six", 6));
  ASSERT_TRUE(node_.WaitFor("six", PodState::kReady));
  EXPECT_THAT(Held("six", kGpu), SizeIs(6));
  // None is left for one more of the scheduler, as the kubelet has it.
  node_.Publish(LocalPod("three", 3) + BoundPod("six", 6) + BoundPod("one", 1));
  ASSERT_TRUE(node_.WaitFor("one", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("one").reason, "UnexpectedAdmissionError");
  // Two are: for a pod of this node.
  node_.Publish(LocalPod("three", 3) + BoundPod("six", 6) + LocalPod("two", 2));
  ASSERT_TRUE(node_.WaitUntil("three waits", [&] {
    return node_.PodNamed("three").state == PodState::kWaiting;
  }));
  node_.Publish(BoundPod("six", 6) + LocalPod("two", 2));
  ASSERT_TRUE(node_.WaitFor("two", PodState::kReady));
  EXPECT_THAT(Held("two", kGpu), SizeIs(2));
}

/// A simulation takes for each party what admission would.
TEST_F(SplitTest, AL145ASimulationKeepsThePartiesApart) {
  node_.Start();
  node_.plugins.Serve(kGpu, 8);
  ASSERT_TRUE(node_.WaitUntil("devices", [&] { return Gpu().capacity == 8; }));
  const auto tried = [&](const std::string& yaml, const std::string& last) {
    SimulationRequest request;
    const ObjectSnapshot objects = SnapshotOf(yaml);
    for (const auto& [name, pod] : objects.pods) request.pods.push_back(*pod);
    const auto simulation = node_.manager().Simulate(request);
    EXPECT_THAT(simulation, IsOk());
    EXPECT_EQ(simulation->pods.back().pod.name, last);
    return simulation->pods.back().verdict;
  };
  using Kind = Verdict::Kind;
  EXPECT_EQ(tried(LocalPod("a", 2), "a").kind, Kind::kAdmit);
  const Verdict three = tried(LocalPod("a", 3), "a");
  EXPECT_EQ(three.kind, Kind::kWait);
  EXPECT_THAT(three.message,
              HasSubstr("2 are for pods of this node, the others for pods of "
                        "the scheduler"));
  EXPECT_EQ(tried(BoundPod("a", 6), "a").kind, Kind::kAdmit);
  EXPECT_EQ(tried(BoundPod("a", 7), "a").kind, Kind::kReject);
  // One on top of the other, and beside what pods hold.
  EXPECT_EQ(tried(BoundPod("a", 6) + LocalPod("b", 2), "b").kind, Kind::kAdmit);
  EXPECT_EQ(tried(LocalPod("a", 1) + LocalPod("b", 2), "b").kind, Kind::kWait);
  node_.Publish(LocalPod("holds", 1));
  ASSERT_TRUE(node_.WaitFor("holds", PodState::kReady));
  EXPECT_EQ(tried(LocalPod("a", 2), "a").kind, Kind::kWait);
  EXPECT_EQ(tried(LocalPod("a", 1), "a").kind, Kind::kAdmit);
  EXPECT_EQ(tried(BoundPod("a", 6), "a").kind, Kind::kAdmit);
}

TEST_F(SplitTest, WhoHoldsWhatIsKnownAfterARestart) {
  node_.Start();
  node_.plugins.Serve(kGpu, 4);
  const std::string all = LocalPod("local", 2);
  node_.Publish(all);
  ASSERT_TRUE(node_.WaitFor("local", PodState::kReady));
  EXPECT_TRUE(node_.store.Load().FindPod(PodUid{"u-local"})->local);
  node_.Restart();
  node_.plugins.Serve(kGpu, 4);
  // Its two are the local ones: the others are the scheduler's, all of them.
  node_.Publish(all + BoundPod("rest", 2));
  ASSERT_TRUE(node_.WaitFor("rest", PodState::kReady));
  EXPECT_FALSE(node_.store.Load().FindPod(PodUid{"u-rest"})->local);
  node_.Publish(all + BoundPod("rest", 2) + LocalPod("more", 1));
  ASSERT_TRUE(node_.WaitForReason("more", "NotEnoughFreeDevices"));
  node_.Publish(BoundPod("rest", 2) + LocalPod("more", 1));
  ASSERT_TRUE(node_.WaitFor("more", PodState::kReady));
}

TEST_F(SplitTest, WithoutASetPodsOfThisNodeWait) {
  node_.options.policies.split_local.clear();
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  node_.Publish(LocalPod("local", 1));
  ASSERT_TRUE(node_.WaitForReason("local", "NotEnoughFreeDevices"));
  EXPECT_THAT(node_.PodNamed("local").message,
              HasSubstr("0 are for pods of this node"));
  EXPECT_EQ(Gpu().allocatable, 2);
  EXPECT_THAT(Held("local", kGpu), IsEmpty());
}

TEST_F(SplitTest, ClaimsAreAControlPlanesAlone) {
  node_.options.node_name = "node-1";
  node_.Start();
  node_.Publish(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "c, uid: u-c}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{name: own, resourceClaimName: "
      "c}]\n  containers: [{name: c, resources: {claims: [{name: own}]}}]\n"
      "---\n");
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("authority: split, which shares out devices of device "
                        "plugins only"));
}

}  // namespace
}  // namespace devmgr
