// SPDX-License-Identifier: Apache-2.0
//
// Nothing is rejected, released or condemned for a wrong reason: objects,
// drivers and plugins come in any order, and what is not there yet is waited
// for.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;

/// What a pod with a claim of its own, an extended resource that a class serves
/// and a device of a plugin needs in the end.
enum class Fact {
  kPod,
  kClaimName,      ///< In the pod's status: which claim was made for it.
  kExtendedClaim,  ///< The same, of its extended resource.
  kClaim,
  kAllocated,
  kReserved,
  kClaimOfResource,
  kClass,
  kDriver,
  kPlugin,
};
constexpr std::array kFacts = {
    Fact::kPod,       Fact::kClaimName, Fact::kExtendedClaim,   Fact::kClaim,
    Fact::kAllocated, Fact::kReserved,  Fact::kClaimOfResource, Fact::kClass,
    Fact::kDriver,    Fact::kPlugin};

using Facts = std::set<Fact>;

std::string ClaimText(const std::string& name, const std::string& owner,
                      bool allocated, bool reserved) {
  std::string text = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n";
  text +=
      fmt::format("metadata: {{name: {}, uid: u-{}{}}}\n", name, name, owner);
  text +=
      "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
      "gpu}}]}}\nstatus:\n";
  if (allocated) {
    text += fmt::format(
        "  allocation: {{devices: {{results: [{{request: r, driver: {}, pool: "
        "pool-1, device: dev-{}}}]}}}}\n",
        kDriver, name);
  }
  if (reserved) {
    text += "  reservedFor: [{resource: pods, name: p, uid: u-p}]\n";
  }
  return text + "---\n";
}

std::string PodText(const Facts& facts) {
  std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers:\n  - name: c\n    resources:\n"
      "      claims: [{name: own}]\n"
      "      limits: {example.com/gpu: \"1\", example.com/nic: \"1\"}\n"
      "  resourceClaims: [{name: own, resourceClaimTemplateName: t}]\n"
      "status:\n  phase: Pending\n";
  if (facts.contains(Fact::kClaimName)) {
    text +=
        "  resourceClaimStatuses: [{name: own, resourceClaimName: p-own}]\n";
  }
  if (facts.contains(Fact::kExtendedClaim)) {
    text +=
        "  extendedResourceClaimStatus:\n    resourceClaimName: p-gpu\n"
        "    requestMappings: [{containerName: c, resourceName: "
        "example.com/gpu, requestName: r}]\n";
  }
  return text + "---\n";
}

std::string ObjectsOf(const Facts& facts) {
  const std::string owner =
      ", ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u-p, "
      "controller: true}]";
  std::string text;
  if (facts.contains(Fact::kClass)) {
    text +=
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
        "gpu}\nspec: {extendedResourceName: example.com/gpu}\n---\n";
  }
  if (facts.contains(Fact::kClaim)) {
    text += ClaimText("p-own", owner, facts.contains(Fact::kAllocated),
                      facts.contains(Fact::kReserved));
  }
  if (facts.contains(Fact::kClaimOfResource)) {
    text += ClaimText("p-gpu", owner, true, true);
  }
  if (facts.contains(Fact::kPod)) text += PodText(facts);
  return text;
}

/// One node, on which everything comes in this order.
class Arrival {
 public:
  explicit Arrival(std::vector<Fact> order) : order_(std::move(order)) {
    node_.Start();
  }

  void Run() {
    for (const Fact fact : order_) {
      Come(fact);
      ASSERT_NO_FATAL_FAILURE(Settle());
      ASSERT_NO_FATAL_FAILURE(CheckPatience());
    }
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    EXPECT_THAT(node_.Resolve("p", "c"),
                ElementsAre("d.example.com/x=p-own", "d.example.com/x=p-gpu",
                            "example.com/nic=0"));
    CheckHistory();
  }

 private:
  void Come(Fact fact) {
    facts_.insert(fact);
    if (fact == Fact::kDriver) {
      node_.drivers.Register(kDriver);
    } else if (fact == Fact::kPlugin) {
      node_.plugins.Serve(kNic, 2);
    } else {
      node_.Publish(ObjectsOf(facts_));
    }
  }

  /// What follows from it has been decided: each step waits in the line of the
  /// loop, then in that of the ledger.
  void Settle() {
    constexpr int kSteps = 4;  // Admit, reserve, commit, prepare.
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_THAT(node_.manager().ReleasePod(PodUid{"another"}), IsOk());
      node_.Sync();
    }
    if (!facts_.contains(Fact::kPod) || is_known_) return;
    ASSERT_TRUE(
        node_.WaitUntil("the pod is known", [&] { return Info().ok(); }));
    is_known_ = true;
  }

  absl::StatusOr<PodInfo> Info() {
    return node_.manager().View()->PodInfoOf(PodUid{"u-p"});
  }

  /// The pod waits, and says for what.
  void CheckPatience() {
    if (!is_known_) return;
    const auto pod = Info();
    ASSERT_THAT(pod, IsOk()) << "it was released";
    ASSERT_NE(pod->state, PodState::kRejected) << pod->message;
    ASSERT_NE(pod->state, PodState::kReleasing) << pod->message;
    // Who was allocated what says all; of the class the node needs nothing.
    const std::size_t needed = facts_.size() - facts_.count(Fact::kClass);
    if (needed + 1 < kFacts.size()) {
      ASSERT_NE(pod->state, PodState::kReady) << "something is missing";
      ASSERT_TRUE(node_.WaitUntil("it says for what it waits", [&] {
        const auto now = Info();
        return now.ok() && !now->message.empty() && !now->waiting_for.empty();
      }));
    }
  }

  /// It never took a step back.
  void CheckHistory() {
    const auto history = node_.manager().maintenance().History(0, 1'000);
    ASSERT_THAT(history, IsOk());
    for (const DecisionInfo& decision : *history) {
      using enum DecisionKind;
      for (const DecisionKind back : {kReject, kUnprepareIntent,
                                      kUnprepareResult, kRelease, kUnreserve}) {
        EXPECT_NE(decision.kind, back) << decision.message;
      }
    }
  }

  const std::vector<Fact> order_;
  Facts facts_;
  bool is_known_ = false;
  TestNode node_;
};

std::string ToString(const std::vector<Fact>& order) {
  std::string text;
  for (const Fact fact : order) {
    text += fmt::format("{} ", static_cast<int>(fact));
  }
  return text;
}

TEST(ArrivalTest, WhateverComesLastIsWaitedFor) {
  for (const Fact last : kFacts) {
    std::vector<Fact> order(kFacts.begin(), kFacts.end());
    std::erase(order, last);
    order.push_back(last);
    ASSERT_NO_FATAL_FAILURE(Arrival(order).Run()) << ToString(order);
  }
}

TEST(ArrivalTest, InAnyOrderThePodBecomesReady) {
  LiveEach({11, 200}, [](Luck& luck) {
    std::vector<Fact> order(kFacts.begin(), kFacts.end());
    std::shuffle(order.begin(), order.end(), luck);
    ASSERT_NO_FATAL_FAILURE(Arrival(order).Run()) << ToString(order);
  });
}

}  // namespace
}  // namespace devmgr
