// SPDX-License-Identifier: Apache-2.0
//
// A saga: a claim of four drivers, the third of which fails for good. Two pods
// share the failure and give up, other drivers stumble over the end, and an
// outage comes at every moment of it. What the others hold is prepared and
// recorded, or a debt, never unknown.
#include <fmt/core.h>

#include <algorithm>

#include "manager/manager_fixture.h"
#include "manager/outage_node.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

using Manner = OutageNode::Manner;
using Policy = DebtPolicy::Kind;
using state::DriverPhase;

const std::vector<std::string> kFour = {"a.example.com", "b.example.com",
                                        "c.example.com", "d.example.com"};
const std::string& kSecond = kFour[1];
const std::string& kThird = kFour[2];

bool OthersHavePrepared(const OutageNode& node) {
  return std::all_of(kFour.begin(), kFour.end(), [&](const auto& driver) {
    return driver == kThird ||
           (node.PhaseOf(kUidOfC1, driver) == DriverPhase::kPrepared &&
            node.Holds(driver, kUidOfC1));
  });
}

/// Of the others nothing is left, in the ledger or with them.
bool OthersAreDone(const OutageNode& node, const std::string& but = "") {
  return std::all_of(kFour.begin(), kFour.end(), [&](const auto& driver) {
    return driver == kThird || driver == but ||
           (!node.PhaseOf(kUidOfC1, driver) && !node.Holds(driver, kUidOfC1));
  });
}

std::size_t PodsOfClaim(const OutageNode& node) {
  const auto* claim = node.ledger().FindClaim(ClaimUid{kUidOfC1});
  return claim == nullptr ? 0 : claim->pods.size();
}

/// `end` is how it comes to its end after all.
OutageScenario Saga(const std::string& name, Manner third, Policy policy,
                    OutageStep end) {
  OutageScenario saga{name, kFour, {}, {}};
  saga.options.dra.debt_policies[kThird] = {policy, {}};
  saga.steps = {
      {"the others have prepared it for p",
       [third](OutageNode& node) {
         node.Behave(kThird, {third, third});
         node.WantClaim("c1", kFour, {"p", "q"});
         node.WantPod("p", {"c1"});
       },
       [](OutageNode& node) {
         return OthersHavePrepared(node) && !node.IsReady("p");
       }},
      {"q shares it, and its failure",
       [](OutageNode& node) { node.WantPod("q", {"c1"}); },
       [](OutageNode& node) {
         return OthersHavePrepared(node) && PodsOfClaim(node) == 2 &&
                !node.IsReady("p") && !node.IsReady("q");
       }},
      {"q gives up, and nothing is lost for p",
       [](OutageNode& node) { node.Drop("q"); },
       [](OutageNode& node) {
         return OthersHavePrepared(node) && node.IsGone("q");
       }},
      {"p gives up: the second owes it, and the third",
       [](OutageNode& node) {
         node.Behave(kSecond, {Manner::kHonest, Manner::kActsAndFails});
         node.Drop("p");
       },
       [](OutageNode& node) {
         return node.Owes(kUidOfC1, kThird) && node.Owes(kUidOfC1, kSecond) &&
                OthersAreDone(node, kSecond);
       }},
      {"only the third owes it",
       [](OutageNode& node) { node.Behave(kSecond, {}); },
       [](OutageNode& node) {
         return node.Owes(kUidOfC1, kThird) && OthersAreDone(node);
       }},
      std::move(end)};
  return saga;
}

OutageStep ItComesBack() {
  return {"the third comes back, and all is done",
          [](OutageNode& node) { node.Behave(kThird, {}); },
          [](OutageNode& node) {
            return node.IsGone("p") && !node.PhaseOf(kUidOfC1, kThird);
          }};
}
OutageStep AnOperatorDropsIt() {
  return {"an operator gives it up",
          [](OutageNode& node) { node.ForceRelease("c1"); },
          [](OutageNode& node) {
            return node.IsGone("p") && !node.PhaseOf(kUidOfC1, kThird);
          }};
}
OutageStep ThePodMayGo() {
  return {"p may go, and the third owes it still", [](OutageNode&) {},
          [](OutageNode& node) {
            return node.IsGone("p") && node.Owes(kUidOfC1, kThird);
          }};
}

void Tell(const OutageScenario& saga) {
  // With scale 1 every second pair of moment and outage.
  const int lives = PlayWithOutages(saga, TestScale() == 1 ? 2 : 1);
  EXPECT_GE(lives, 100);
  if (TestScale() > 1) fmt::print("{} lives\n", lives);
}

TEST(SagaTest, TheThirdOfFourDriversRefusesUntilItIsMended) {
  Tell(Saga("it refuses", Manner::kRefuses, Policy::kBlock, ItComesBack()));
}

TEST(SagaTest, TheThirdOfFourDriversActsAndSaysThatItDidNot) {
  Tell(Saga("it acts and fails", Manner::kActsAndFails, Policy::kBlock,
            ItComesBack()));
}

TEST(SagaTest, TheThirdOfFourDriversIsGivenUpByAnOperator) {
  Tell(Saga("it refuses", Manner::kRefuses, Policy::kBlock,
            AnOperatorDropsIt()));
}

TEST(SagaTest, TheThirdOfFourDriversMayOweItWhileThePodGoes) {
  Tell(Saga("it may defer", Manner::kActsAndFails, Policy::kDefer,
            ThePodMayGo()));
}

}  // namespace
}  // namespace devmgr
