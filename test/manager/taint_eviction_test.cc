// SPDX-License-Identifier: Apache-2.0
//
// Pods leave devices that have taints with NoExecute, where this node allocated
// them.
#include <fmt/format.h>

#include <string>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/recorded_metrics.h"
#include "support/mailbox.h"
#include "support/scripted_runtime.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using State = RuntimeContainer::State;

constexpr char kReason[] = "DeletionByDeviceTaintManager";

/// A class, and a slice with one device.
constexpr char kDevices[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {selectors: [{cel: {expression: 'device.driver == "
    "\"d.example.com\"'}}]}\n---\n"
    "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
    "s}\nspec: {driver: d.example.com, nodeName: node-1, pool: {name: node-1, "
    "generation: 1, resourceSliceCount: 1}, devices: [{name: d1}]}\n---\n";

/// A claim of the same name as its pod.
std::string ClaimAndPod(const std::string& name,
                        const std::string& tolerations = "") {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: c-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu, tolerations: [{1}]}}}}]}}}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{{name: own, resourceClaimName: "
      "{0}}}]\n  containers: [{{name: c, resources: {{claims: [{{name: "
      "own}}]}}}}]\n---\n",
      name, tolerations);
}

std::string Rule(const std::string& effect) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: "
      "{{name: "
      "broken}}\nspec: {{deviceSelector: {{device: d1}}, taint: {{key: "
      "example.com/broken, effect: {}, timeAdded: "
      "'2026-01-02T03:04:05Z'}}}}\n---\n",
      effect);
}

class ActionMetrics final : public RecordedMetrics {
 public:
  void OnPodAction(std::string_view action, const std::string& reason,
                   std::string_view outcome) override {
    Add(fmt::format("{} {} {}", action, reason, outcome));
  }
  void OnTaintEviction(std::chrono::nanoseconds late) override {
    Add("evicted", late);
  }
};

class TaintEvictionTest : public DeviceNodeTest {
 protected:
  TaintEvictionTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
    node_.runtime = &runtime_;
    node_.metrics = &metrics_;
    node_.act_on_pod = [this](const PodAction& action) {
      actions_.Put(action);
    };
  }
  ~TaintEvictionTest() override { node_.Stop(); }

  /// Pod `q` is Ready and runs, and the rule comes.
  void EvictQ() {
    node_.Start();
    runtime_.Runs({{"u-q", State::kRunning}});
    node_.Publish(kDevices + ClaimAndPod("q"));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
    node_.Publish(kDevices + Rule("NoExecute") + ClaimAndPod("q"));
    ASSERT_TRUE(node_.WaitFor("q", PodState::kEvicting));
  }
  std::size_t Claims() { return node_.store.Load().local_claims.size(); }

  ScriptedRuntime runtime_;
  ActionMetrics metrics_;
  Mailbox<PodAction> actions_;
};

TEST_F(TaintEvictionTest, AL190EvictedAtOnceAndFreeAfterStopAndUnprepare) {
  EvictQ();
  const auto action = actions_.Take();
  ASSERT_TRUE(action.has_value());
  EXPECT_EQ(action->kind, PodAction::Kind::kEvict);
  EXPECT_EQ(action->pod, PodUid{"u-q"});
  EXPECT_EQ(action->reason, kReason);
  EXPECT_EQ(action->condition, "DisruptionTarget");
  EXPECT_THAT(action->message, HasSubstr("d.example.com/node-1/d1"));
  EXPECT_THAT(MessagesOf("DeviceTaintManagerEviction"),
              ElementsAre(HasSubstr("example.com/broken:NoExecute")));
  // What runs of it is to be stopped, and keeps its device until then.
  const auto stop = actions_.Take();
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->kind, PodAction::Kind::kStop);
  ASSERT_TRUE(node_.WaitUntil("the container is named", [&] {
    return node_.PodNamed("q").message.find("container 'c'") !=
           std::string::npos;
  }));
  const PodInfo pod = node_.PodNamed("q");
  EXPECT_EQ(pod.reason, kReason);
  EXPECT_THAT(pod.waiting_for, SizeIs(1));
  EXPECT_EQ(Claims(), 1u);
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  EXPECT_THAT(
      node_.manager().BeforeContainerStart(PodUid{"u-q"}, "c"),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("to leave")));

  runtime_.Runs({{"u-q", State::kExited}});
  ASSERT_TRUE(node_.WaitFor("q", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("q").reason, kReason);
  EXPECT_THAT(node_.drivers.calls(), SizeIs(2));
  ASSERT_TRUE(node_.WaitUntil("the claim is free", [&] {
    return !node_.manager()
                .Objects()
                ->claims.at({"default", "q"})
                ->status.allocation.has_value();
  }));
  EXPECT_EQ(actions_.size(), 0u);
  EXPECT_THAT(metrics_.calls(), Contains("evicted"));
  EXPECT_THAT(metrics_.calls(),
              Contains(std::string("Evict ") + kReason + " requested"));
  EXPECT_THAT(metrics_.calls(),
              Contains(std::string("Stop ") + kReason + " requested"));
}

// The taint is a year old, the deadline a hundred years away; then the rule
// goes.
TEST_F(TaintEvictionTest, AL190ATolerationPutsItOffAndTheEndOfTheRuleCancels) {
  const std::string pod = ClaimAndPod(
      "p",
      "{operator: Exists, effect: NoExecute, tolerationSeconds: 3153600000}");
  node_.Start();
  node_.Publish(kDevices + Rule("NoExecute") + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(kDevices + pod);
  node_.Sync();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_EQ(actions_.size(), 0u);
}

TEST_F(TaintEvictionTest, AL190ATolerationEndsWithATimer) {
  node_.Start();
  const std::string pod = ClaimAndPod(
      "p", "{operator: Exists, effect: NoExecute, tolerationSeconds: 1}");
  node_.Publish(kDevices + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  // Without a time it counts since it was seen.
  std::string rule = Rule("NoExecute");
  rule.replace(rule.find(", timeAdded"),
               rule.find("Z'") + 2 - rule.find(", timeAdded"), "");
  node_.Publish(kDevices + rule + pod);
  node_.Sync();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  runtime_.Runs({});
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_GE(metrics_.calls().size(), 2u);
}

TEST_F(TaintEvictionTest, AnEvictionOutlivesARestart) {
  EvictQ();
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("q", PodState::kEvicting));
  ASSERT_TRUE(node_.WaitUntil("it is to be stopped again",
                              [&] { return actions_.size() >= 4; }));
  // The rule is gone; that it has to leave is decided.
  node_.Publish(kDevices + ClaimAndPod("q"));
  runtime_.Runs({});
  ASSERT_TRUE(node_.WaitFor("q", PodState::kRejected));
  node_.Restart();
  node_.Publish(kDevices + ClaimAndPod("q"));
  node_.Sync();
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kRejected);
  EXPECT_EQ(Claims(), 0u);
  node_.Publish(kDevices);
  EXPECT_TRUE(node_.WaitUntilGone("q"));
}

TEST_F(TaintEvictionTest, WithoutARuntimeItIsHeldUntilThePodIsGone) {
  node_.runtime = nullptr;
  EvictQ();
  ASSERT_TRUE(node_.WaitUntil("it says why", [&] {
    return node_.PodNamed("q").message.find("no container runtime") !=
           std::string::npos;
  }));
  EXPECT_EQ(Claims(), 1u);
  node_.Publish(kDevices);
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  EXPECT_TRUE(
      node_.WaitUntil("the claim is free", [&] { return Claims() == 0; }));
}

TEST_F(TaintEvictionTest, AnEvictedPodThatIsGoneMeanwhileIsReleased) {
  EvictQ();
  node_.Publish(kDevices + Rule("NoExecute"));
  node_.Sync();
  EXPECT_EQ(Claims(), 1u);
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitUntilGone("q"));
}

TEST_F(TaintEvictionTest, AL191ADryRunIsAnEventAndEvictsNoPod) {
  node_.Start();
  node_.Publish(kDevices + ClaimAndPod("q"));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.Publish(kDevices + Rule("None") + ClaimAndPod("q"));
  ASSERT_TRUE(node_.WaitUntil(
      "an event", [&] { return !MessagesOf("EvictionInProgress").empty(); }));
  node_.Publish(kDevices + Rule("None") + ClaimAndPod("q") + Rule("None"));
  node_.Sync();
  EXPECT_THAT(
      MessagesOf("EvictionInProgress"),
      ElementsAre("False (NoEffect): it selects 1 published device and 1 "
                  "allocated device; with effect NoExecute 1 pod in 1 "
                  "namespace would be evicted"));
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kReady);
  EXPECT_EQ(actions_.size(), 0u);
}

/// Another pod with the claim of `q`.
std::string SecondPod() {
  std::string text = ClaimAndPod("q");
  text = text.substr(text.find("apiVersion: v1\n"));
  text.replace(text.find("name: q, uid: u-q"), 17, "name: r, uid: u-r");
  return text;
}

// As with an API server as source.
TEST_F(TaintEvictionTest, AL195AnotherPartyEvictsAndNoPodIsAdded) {
  node_.options.policies.taint_eviction = false;
  node_.Start();
  node_.Publish(kDevices + ClaimAndPod("q"));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.Publish(kDevices + Rule("NoExecute") + ClaimAndPod("q") + SecondPod());
  ASSERT_TRUE(node_.WaitForReason("r", "ClaimCannotBeReserved"));
  EXPECT_THAT(node_.PodNamed("r").message,
              HasSubstr("claim default/q is reserved for no more pods: device "
                        "d.example.com/node-1/d1"));
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kReady);
  EXPECT_EQ(actions_.size(), 0u);
  // The rule goes: it may have it.
  node_.Publish(kDevices + ClaimAndPod("q") + SecondPod());
  EXPECT_TRUE(node_.WaitFor("r", PodState::kReady));
}

// Free again it wakes the pod that waits, which TestNode audits.
TEST_F(TaintEvictionTest, AnotherPodGetsTheDeviceWhenItHasBeenLeft) {
  EvictQ();
  // The rule goes; that `q` has to leave is decided, and it runs still.
  node_.Publish(kDevices + ClaimAndPod("q") + ClaimAndPod("r"));
  ASSERT_TRUE(node_.WaitForReason("r", "CannotAllocateClaims"));
  EXPECT_THAT(node_.PodNamed("r").message, HasSubstr("default/q"));
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kEvicting);
  runtime_.Runs({});
  EXPECT_TRUE(node_.WaitFor("r", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kRejected);
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// Device `e1` of another driver is the card that `q` has of a device plugin:
// nothing but the end of `q` concerns the pod that waits for it.
TEST_F(TaintEvictionTest, WhatItHadOfAPluginIsFreeByAnotherNameToo) {
  const std::string card =
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
      "card}\nspec: {selectors: [{cel: {expression: 'device.driver == "
      "\"e.example.com\"'}}]}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "t}\nspec: {driver: e.example.com, nodeName: node-1, pool: {name: "
      "node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: e1, "
      "attributes: {resource.kubernetes.io/pciBusID: {string: "
      "'0000:3b:00.0'}}}]}\n---\n";
  const std::string q =
      Replaced(ClaimAndPod("q"), "claims: [{name: own}]",
               "claims: [{name: own}], limits: {example.com/gpu: '1'}");
  const std::string r = Replaced(ClaimAndPod("r"), "deviceClassName: gpu",
                                 "deviceClassName: card");
  node_.drivers.Register(kOther);
  node_.Start();
  runtime_.Runs({});
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Report(kGpu, {{"0000:3b:00.0", device::Health::kHealthy, {}}});
  node_.Sync();
  node_.Publish(kDevices + card + q);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.Publish(kDevices + card + q + r);
  ASSERT_TRUE(node_.WaitForReason("r", "DeviceHeldElsewhere"));
  node_.Publish(kDevices + card + Rule("NoExecute") + q + r);
  EXPECT_TRUE(node_.WaitFor("r", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("q").state, PodState::kRejected);
}

TEST_F(TaintEvictionTest, AFailedWriteIsTriedAgain) {
  node_.Start();
  runtime_.Runs({});
  node_.Publish(kDevices + ClaimAndPod("q"));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.store.FailNext(SharedStore::Failure::kLost);
  node_.Publish(kDevices + Rule("NoExecute") + ClaimAndPod("q"));
  EXPECT_TRUE(node_.WaitFor("q", PodState::kRejected));
  EXPECT_THAT(metrics_.calls(),
              Contains(std::string("Evict ") + kReason + " failed"));
}

}  // namespace
}  // namespace devmgr
