// SPDX-License-Identifier: Apache-2.0
//
// Which party allocates is a fact of the ledger, and handed over in steps: a
// node is stopped between any two of them, and comes out the same.
#include <fmt/format.h>

#include <utility>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {selectors: [{cel: {expression: 'device.driver == "
    "\"d.example.com\"'}}]}\n---\n"
    "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
    "s}\nspec: {driver: d.example.com, nodeName: node-1, pool: {name: node-1, "
    "generation: 1, resourceSliceCount: 1}, devices: [{name: d1}, {name: "
    "d2}]}\n---\n";

/// A claim that nobody has allocated, and its pod.
std::string ClaimPod(const std::string& name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: c-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{{name: own, resourceClaimName: "
      "{0}}}]\n  containers: [{{name: c, resources: {{claims: [{{name: "
      "own}}]}}}}]\n---\n",
      name);
}

std::string PlainPod(const std::string& name) {
  return DevicePod(name, {}, "  nodeName: node-1\n");
}

class AuthorityNodeTest : public DeviceNodeTest {
 protected:
  AuthorityNodeTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
  }

  /// As Publish, of a source that has not listed all.
  void PublishPart(const std::string& yaml) {
    ObjectSnapshot part = SnapshotOf(yaml);
    part.complete = false;
    node_.source->Publish(std::move(part));
    ASSERT_TRUE(
        node_.WaitUntil("part of it", [&] { return !Node().source_complete; }));
  }
  NodeInfo Node() { return node_.manager().View()->Node(); }
  std::size_t Allocated() { return node_.store.Load().local_claims.size(); }
  /// How many decisions there are of the authority.
  std::size_t Decisions() {
    const auto history = node_.manager().maintenance().History(0);
    std::size_t count = 0;
    for (const DecisionInfo& decision : *history) {
      if (decision.kind == DecisionKind::kAuthority) ++count;
    }
    return count;
  }
  ::testing::AssertionResult WaitForAuthority(Authority authority) {
    return node_.WaitUntil("authority", [&] {
      return Node().authority == authority && !Node().authority_to.has_value();
    });
  }
  absl::Status Set(Authority to) {
    return node_.manager().maintenance().SetAuthority(to, "so");
  }
};

// AL-146
TEST_F(AuthorityNodeTest, AL146NodeToSchedulerStoppedBetweenTheSteps) {
  const std::string first = std::string(kClass) + ClaimPod("runs");
  const std::string all = first + ClaimPod("later") + PlainPod("plain");
  node_.Start();
  node_.Publish(first);
  ASSERT_TRUE(node_.WaitFor("runs", PodState::kReady));
  const auto answer = node_.Resolve("runs", "c");
  EXPECT_FALSE(Node().authority_since.has_value());

  // The source is not complete: the hand-over cannot end.
  PublishPart(first);
  EXPECT_THAT(Set(Authority::kScheduler), IsOk());
  EXPECT_EQ(Node().authority, Authority::kNode);
  EXPECT_EQ(Node().authority_to, Authority::kScheduler);
  EXPECT_THAT(Node().authority_wait, HasSubstr("has not listed"));
  PublishPart(all);
  ASSERT_TRUE(node_.WaitForReason("later", "AuthorityChanging"));
  EXPECT_EQ(node_.PodNamed("later").message,
            "authority changing: from node to scheduler; the source has not "
            "listed all of its objects yet");
  // A pod that needs no device is not held up.
  ASSERT_TRUE(node_.WaitFor("plain", PodState::kReady));
  EXPECT_EQ(node_.Resolve("runs", "c"), answer);
  EXPECT_EQ(Allocated(), 1U);

  node_.Restart();
  EXPECT_EQ(Node().authority_to, Authority::kScheduler);
  EXPECT_EQ(node_.Resolve("runs", "c"), answer);
  PublishPart(all);
  ASSERT_TRUE(node_.WaitForReason("later", "AuthorityChanging"));
  EXPECT_EQ(Allocated(), 1U);

  node_.Publish(all);
  ASSERT_TRUE(WaitForAuthority(Authority::kScheduler));
  ASSERT_TRUE(node_.WaitForReason("later", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("later").message,
              HasSubstr("authority: scheduler, so a control plane has to"));
  EXPECT_EQ(Allocated(), 1U);
  EXPECT_TRUE(Node().authority_since.has_value());
  EXPECT_EQ(Node().authority_by_operator, "so");
  EXPECT_EQ(Decisions(), 2U);
  ASSERT_TRUE(node_.WaitFor("runs", PodState::kReady));
  EXPECT_EQ(node_.Resolve("runs", "c"), answer);

  // The configuration is what it was: what the operator said stands.
  node_.Restart();
  node_.Publish(all);
  ASSERT_TRUE(node_.WaitForReason("later", "ClaimNotReserved"));
  EXPECT_EQ(Node().authority, Authority::kScheduler);
  EXPECT_EQ(Decisions(), 2U);
  EXPECT_EQ(node_.Resolve("runs", "c"), answer);

  // What this node had allocated it also releases.
  node_.Publish(std::string(kClass) + ClaimPod("later"));
  ASSERT_TRUE(node_.WaitUntilGone("runs"));
  ASSERT_TRUE(node_.WaitUntil("released", [&] { return Allocated() == 0; }));
  EXPECT_EQ(node_.PodNamed("later").reason, "ClaimNotReserved");
}

// The switch is the authority.
TEST_F(AuthorityNodeTest, AL093PodsOfFilesGetClaimsWhereThisNodeAllocates) {
  const std::string objects = std::string(kClass) + ClaimPod("p");
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("authority: scheduler, so a control plane has to"));
  EXPECT_EQ(Allocated(), 0U);

  EXPECT_THAT(Set(Authority::kNode), IsOk());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto claim = node_.manager().Objects()->claims.at({"default", "p"});
  ASSERT_TRUE(claim->status.allocation.has_value());
  ASSERT_THAT(claim->status.reserved_for, SizeIs(1));
  EXPECT_EQ(claim->status.reserved_for[0].uid, "u-p");
}

// AL-146, the other way round.
TEST_F(AuthorityNodeTest, AL146SchedulerToNodeAdoptsWhatIsAllocated) {
  node_.options.policies.authority = Authority::kScheduler;
  const std::string allocated =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "given, uid: c-given}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}\nstatus: {allocation: {devices: {results: "
      "[{request: r, driver: d.example.com, pool: node-1, device: d1}]}}, "
      "reservedFor: [{resource: pods, name: given, uid: u-given}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: given, uid: u-given}\n"
      "spec:\n  nodeName: node-1\n  resourceClaims: [{name: own, "
      "resourceClaimName: given}]\n  containers: [{name: c, resources: "
      "{claims: [{name: own}]}}]\n---\n";
  const std::string all =
      std::string(kClass) + allocated + ClaimPod("own") + ClaimPod("third");
  node_.Start();
  node_.Publish(all);
  ASSERT_TRUE(node_.WaitFor("given", PodState::kReady));
  ASSERT_TRUE(node_.WaitForReason("own", "ClaimNotReserved"));
  ASSERT_TRUE(WaitForAuthority(Authority::kScheduler));
  EXPECT_EQ(Decisions(), 1U);
  EXPECT_THAT(Set(Authority::kNode), IsOk());
  ASSERT_TRUE(WaitForAuthority(Authority::kNode));
  // One of the two devices is held: by the pod that had it.
  ASSERT_TRUE(node_.WaitUntil("one of them", [&] {
    return (node_.PodNamed("own").state == PodState::kReady) !=
           (node_.PodNamed("third").state == PodState::kReady);
  }));
  EXPECT_EQ(Allocated(), 1U);
  const state::State state = node_.store.Load();
  const auto& claim = *state.local_claims.begin()->second->object;
  EXPECT_EQ(claim.status.allocation->results[0].device, "d2");
  EXPECT_EQ(node_.PodNamed("given").state, PodState::kReady);
  EXPECT_THAT(MessagesOf("AuthorityChanged"),
              ElementsAre("devices are allocated by node, by an operator: so"));
}

TEST_F(AuthorityNodeTest, AnotherConfigurationIsAHandOver) {
  const std::string all =
      std::string(kClass) + ClaimPod("runs") + ClaimPod("second");
  node_.Start();
  node_.Publish(all);
  ASSERT_TRUE(node_.WaitFor("runs", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("second", PodState::kReady));
  node_.Stop();
  node_.options.policies.authority = Authority::kScheduler;
  const std::string more = all + ClaimPod("third");
  ObjectSnapshot part = SnapshotOf(more);
  part.complete = false;
  node_.source->Publish(std::move(part));
  node_.Start();
  ASSERT_TRUE(node_.WaitForReason("third", "AuthorityChanging"));
  node_.Publish(more);
  ASSERT_TRUE(WaitForAuthority(Authority::kScheduler));
  ASSERT_TRUE(node_.WaitForReason("third", "ClaimNotReserved"));
  EXPECT_THAT(MessagesOf("AuthorityChanged"),
              ElementsAre("devices are allocated by scheduler, by the "
                          "configuration"));
  EXPECT_EQ(Allocated(), 2U);
  node_.Stop();
  node_.options.policies.authority = Authority::kNode;
  node_.Start();
  node_.Publish(std::string(kClass) + ClaimPod("runs") + ClaimPod("third"));
  ASSERT_TRUE(node_.WaitFor("third", PodState::kReady));
  EXPECT_EQ(Node().authority, Authority::kNode);
}

/// The write fails: lost, or on disk all the same. Either way it comes out the
/// same.
TEST_F(AuthorityNodeTest, AWriteThatFailsIsTriedAgain) {
  for (const auto failure :
       {SharedStore::Failure::kLost, SharedStore::Failure::kWritten}) {
    node_.Start();
    node_.Publish(std::string(kClass) + ClaimPod("runs"));
    ASSERT_TRUE(node_.WaitFor("runs", PodState::kReady));
    PublishPart(std::string(kClass) + ClaimPod("runs"));
    ASSERT_THAT(Set(Authority::kScheduler), IsOk());
    node_.store.FailNext(failure);
    node_.Publish(std::string(kClass) + ClaimPod("runs"));
    ASSERT_TRUE(WaitForAuthority(Authority::kScheduler));
    ASSERT_THAT(Set(Authority::kNode), IsOk());
    ASSERT_TRUE(WaitForAuthority(Authority::kNode));
    EXPECT_EQ(Allocated(), 1U);
    node_.Stop();
  }
}

// AL-147
TEST_F(AuthorityNodeTest, AL147WhileTheServerIsAwayNothingIsAllocated) {
  node_.options.policies.authority = Authority::kScheduler;
  const std::string given =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "a, uid: c-a}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}\nstatus: {allocation: {devices: {results: "
      "[{request: r, driver: d.example.com, pool: node-1, device: d1}]}}, "
      "reservedFor: [{resource: pods, name: a, uid: u-a}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u-a}\n"
      "spec:\n  nodeName: node-1\n  resourceClaims: [{name: own, "
      "resourceClaimName: a}]\n  containers: [{name: c, resources: "
      "{claims: [{name: own}]}}]\n---\n";
  node_.Start();
  node_.Publish(std::string(kClass) + given);
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  // What is left of the source: nothing is complete any more.
  PublishPart(std::string(kClass) + given + ClaimPod("b"));
  ASSERT_TRUE(node_.WaitForReason("b", "ClaimNotReserved"));
  node_.Restart();
  PublishPart(std::string(kClass) + given + ClaimPod("b"));
  ASSERT_TRUE(node_.WaitForReason("b", "ClaimNotReserved"));
  EXPECT_EQ(Allocated(), 0U);
  EXPECT_EQ(Node().authority, Authority::kScheduler);
  EXPECT_THAT(node_.Resolve("a", "c"), SizeIs(1));
  // It is unprepared all the same when its pod is known to be gone.
  node_.Publish(std::string(kClass) + ClaimPod("b"));
  ASSERT_TRUE(node_.WaitUntilGone("a"));
  EXPECT_EQ(Allocated(), 0U);
}

// 2.15, rule 5: a scheduler did not know what this node had given away.
TEST_F(AuthorityNodeTest, ADeviceOfTwoPartiesStaysWithItsHolder) {
  const std::string theirs =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "t, uid: c-t}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}\nstatus: {allocation: {devices: {results: "
      "[{request: r, driver: d.example.com, pool: node-1, device: d1}]}}, "
      "reservedFor: [{resource: pods, name: t, uid: u-t}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: t, uid: u-t}\n"
      "spec:\n  nodeName: node-1\n  resourceClaims: [{name: own, "
      "resourceClaimName: t}]\n  containers: [{name: c, resources: "
      "{claims: [{name: own}]}}]\n---\n";
  const std::string ours = std::string(kClass) + ClaimPod("runs");
  node_.Start();
  node_.Publish(ours);
  ASSERT_TRUE(node_.WaitFor("runs", PodState::kReady));
  ASSERT_THAT(Set(Authority::kScheduler), IsOk());
  ASSERT_TRUE(WaitForAuthority(Authority::kScheduler));
  node_.Publish(ours + theirs);
  ASSERT_TRUE(node_.WaitForReason("t", "DeviceDoubleClaimed"));
  const std::string text =
      "device node-1/d1 of driver d.example.com is allocated to ResourceClaim "
      "t and, by this node, to default/runs, which keeps it";
  EXPECT_EQ(node_.PodNamed("t").message, text);
  EXPECT_THAT(MessagesOf("DeviceDoubleClaimed"), ElementsAre(text));
  EXPECT_EQ(node_.PodNamed("runs").state, PodState::kReady);
  node_.Publish(std::string(kClass) + theirs);
  ASSERT_TRUE(node_.WaitFor("t", PodState::kReady));
}

TEST_F(AuthorityNodeTest, WhatCannotBeSetIsRefused) {
  node_.Start();
  EXPECT_THAT(Set(Authority::kNode),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("node is the authority already")));
  EXPECT_THAT(
      node_.manager().maintenance().SetAuthority(Authority::kScheduler, ""),
      StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Decisions(), 0U);
}

}  // namespace
}  // namespace devmgr
