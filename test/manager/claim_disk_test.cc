// SPDX-License-Identifier: Apache-2.0
//
// The end comes between what a driver does, what it answers, and what is on
// disk of it: kills, power failures, failing writes at every such moment of the
// life of claims. Whatever is found afterwards, each claim is prepared or owed,
// never unknown, and at last the drivers' books are the ledger.
#include <fmt/core.h>

#include <algorithm>

#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "manager/manager_fixture.h"
#include "manager/outage_node.h"
#include "support/random_lives.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using Manner = OutageNode::Manner;
using Policy = DebtPolicy::Kind;

constexpr char kA[] = "a.example.com";
constexpr char kB[] = "b.example.com";
constexpr char kC[] = "c.example.com";
const std::vector<std::string> kAll = {kA, kB, kC};

OutageStep Want(const std::string& pod,
                const std::vector<std::string>& claims) {
  return {pod + " is Ready",
          [=](OutageNode& node) { node.WantPod(pod, claims); },
          [=](OutageNode& node) { return node.IsReady(pod); }};
}
OutageStep Drop(const std::string& pod) {
  return {pod + " is gone", [=](OutageNode& node) { node.Drop(pod); },
          [=](OutageNode& node) { return node.IsGone(pod); }};
}
/// What comes about by itself; nothing is waited for.
OutageStep Do(std::function<void(OutageNode&)> act) {
  return {"it is said", std::move(act), [](OutageNode&) { return true; }};
}

OutageScenario Alone() {
  return {"one claim of one driver",
          {kA},
          {},
          {Do([](OutageNode& node) { node.WantClaim("c1", {kA}, {"p"}); }),
           Want("p", {"c1"}), Drop("p")}};
}

OutageScenario Several() {
  return {"two claims of three drivers, one of which fails twice",
          kAll,
          {},
          {Do([](OutageNode& node) {
             node.WantClaim("c1", kAll, {"p"});
             node.WantClaim("c2", {kB}, {"p"});
           }),
           {"the others have prepared",
            [](OutageNode& node) {
              node.Behave(kB, {Manner::kActsAndFails, Manner::kHonest});
              node.WantPod("p", {"c1", "c2"});
            },
            [](OutageNode& node) {
              return node.PhaseOf("u-c1", kA) ==
                         state::DriverPhase::kPrepared &&
                     node.PhaseOf("u-c1", kC) == state::DriverPhase::kPrepared;
            }},
           {"p is Ready", [](OutageNode& node) { node.Behave(kB, {}); },
            [](OutageNode& node) { return node.IsReady("p"); }},
           {"p owes B's part",
            [](OutageNode& node) {
              node.Behave(kB, {Manner::kHonest, Manner::kActsAndFails});
              node.Drop("p");
            },
            [](OutageNode& node) {
              return node.Owes("u-c1", kB) && node.Owes("u-c2", kB) &&
                     !node.PhaseOf("u-c1", kA).has_value();
            }},
           {"p is gone", [](OutageNode& node) { node.Behave(kB, {}); },
            [](OutageNode& node) { return node.IsGone("p"); }}}};
}

OutageScenario Shared() {
  return {
      "a claim that pods share and hand on",
      {kA, kB},
      {},
      {Do([](OutageNode& node) {
         node.WantClaim("c1", {kA, kB}, {"p", "q", "r"});
         node.WantPod("q", {"c1"});
       }),
       Want("p", {"c1"}),
       Drop("q"),
       Want("r", {"c1"}),
       Drop("p"),
       {"r is gone and q is Ready",
        [](OutageNode& node) {
          node.Drop("r");
          node.WantPod("q", {"c1"});
        },
        [](OutageNode& node) { return node.IsGone("r") && node.IsReady("q"); }},
       Drop("q")}};
}

/// The driver is away when its claim is given up.
OutageScenario Owed(const DebtPolicy& policy, const std::string& name) {
  OutageScenario scenario{name, {kA, kB}, {}, {}};
  scenario.options.dra.debt_policy = policy;
  scenario.steps = {Do([](OutageNode& node) {
                      node.WantClaim("c1", {kA, kB}, {"p", "q"});
                    }),
                    Want("p", {"c1"}),
                    {"B owes it",
                     [](OutageNode& node) {
                       node.Behave(kB, {Manner::kGone, Manner::kHonest});
                       node.Drop("p");
                     },
                     [policy](OutageNode& node) {
                       // After an outage it may be forgiven already.
                       const bool forgiven =
                           policy.kind == Policy::kForgive &&
                           !node.PhaseOf("u-c1", kB).has_value();
                       return (node.Owes("u-c1", kB) || forgiven) &&
                              !node.PhaseOf("u-c1", kA).has_value();
                     }}};
  return scenario;
}

OutageScenario Blocked() {
  OutageScenario scenario = Owed({}, "a debt that blocks");
  scenario.steps.push_back({"p is gone",
                            [](OutageNode& node) { node.Behave(kB, {}); },
                            [](OutageNode& node) { return node.IsGone("p"); }});
  scenario.steps.push_back(Want("q", {"c1"}));
  return scenario;
}

OutageScenario Deferred() {
  OutageScenario scenario = Owed({Policy::kDefer}, "a debt that is deferred");
  scenario.steps.push_back({"p is gone, and the claim is not",
                            [](OutageNode&) {},
                            [](OutageNode& node) {
                              return node.IsGone("p") && node.Owes("u-c1", kB);
                            }});
  scenario.steps.push_back(
      Do([](OutageNode& node) { node.WantPod("q", {"c1"}); }));
  scenario.steps.push_back(
      {"q is Ready", [](OutageNode& node) { node.Behave(kB, {}); },
       [](OutageNode& node) { return node.IsReady("q"); }});
  return scenario;
}

OutageScenario Forgiven() {
  OutageScenario scenario =
      Owed({Policy::kForgive, milliseconds(20'000)}, "a debt that is forgiven");
  scenario.steps.push_back({"p is gone", [](OutageNode&) {},
                            [](OutageNode& node) { return node.IsGone("p"); }});
  scenario.steps.push_back(Do([](OutageNode& node) { node.Behave(kB, {}); }));
  scenario.steps.push_back(Want("q", {"c1"}));
  return scenario;
}

OutageScenario ForceReleased() {
  OutageScenario scenario = Owed({}, "a debt that an operator drops");
  scenario.steps.push_back({"p is gone",
                            [](OutageNode& node) { node.ForceRelease("c1"); },
                            [](OutageNode& node) { return node.IsGone("p"); }});
  scenario.steps.push_back(Do([](OutageNode& node) { node.Behave(kB, {}); }));
  scenario.steps.push_back(Want("q", {"c1"}));
  return scenario;
}

OutageScenario CreatedAgain() {
  return {"a claim of the same name while the old one is owed",
          {kA, kB},
          {},
          {Do([](OutageNode& node) {
             node.WantClaim("c1", {kA, kB}, {"p"});
           }),
           Want("p", {"c1"}),
           {"A owes the old one, and q waits",
            [](OutageNode& node) {
              node.Behave(kA, {Manner::kHonest, Manner::kRefuses});
              node.Drop("p");
              node.WantClaim("c1", {kB}, {"q"}, "u-c1-again");
              node.WantPod("q", {"c1"});
            },
            [](OutageNode& node) {
              return node.Owes("u-c1", kA) && !node.IsReady("q") &&
                     !node.PhaseOf("u-c1-again", kB).has_value();
            }},
           {"q is Ready", [](OutageNode& node) { node.Behave(kA, {}); },
            [](OutageNode& node) { return node.IsReady("q"); }}}};
}

std::vector<OutageScenario> Scenarios() {
  return {Alone(),    Several(),       Shared(),      Blocked(),
          Deferred(), ForceReleased(), CreatedAgain()};
}

/// The store as it is in life, on a disk that loses what is not synced.
class RealDisk final : public OutageDisk {
 public:
  explicit RealDisk(checkpoint::Survival survival) : survival_(survival) {}

  std::shared_ptr<checkpoint::LedgerStore> Open() override {
    if (const auto image = std::exchange(left_, std::nullopt)) {
      Renew();
      checkpoint::WriteImage(*image, folder_->path());
    }
    disk_ = std::make_unique<checkpoint::SimulatedDisk>(folder_->path());
    auto store =
        checkpoint::OpenRocksDbStoreOn({folder_->path() / "state", {}},
                                       checkpoint::LedgerOptions(disk_->env()));
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return OutageDisk::Open();
    EXPECT_TRUE((*store)->Load().ok());
    return *std::move(store);
  }
  void LosePower() override { left_ = disk_->AfterPowerFailure(survival_); }

 private:
  void Renew() {
    disk_ = nullptr;
    folder_ = std::make_unique<TempFolder>();
  }

  const checkpoint::Survival survival_;
  std::unique_ptr<TempFolder> folder_ = std::make_unique<TempFolder>();
  std::unique_ptr<checkpoint::SimulatedDisk> disk_;
  std::optional<checkpoint::DiskImage> left_;
};

// (What a power failure leaves of a store is tried at each of its calls in
// test/checkpoint/power_failure_test.cc.)
TEST(ClaimDiskTest, WhatIsNotSyncedMayBeLostAndNoClaimIsUnknown) {
  using Data = checkpoint::Survival::Data;
  using Names = checkpoint::Survival::Names;
  constexpr checkpoint::Survival kSurvivals[] = {{Data::kLost, Names::kLost},
                                                 {Data::kTorn, Names::kAll}};
  const std::uint64_t stride = TestScale() == 1 ? 3 : 1;
  const OutageScenario scenario = Several();
  const std::uint64_t moments = Play(scenario, {});
  for (std::uint64_t moment = 1; moment <= moments; moment += stride) {
    SCOPED_TRACE(fmt::format("at moment {} of {}", moment, moments));
    const auto outage =
        moment % 2 == 0 ? Outage::kPowerLost : Outage::kPowerLostWithAll;
    Play(scenario, {{moment, outage}}, 0,
         std::make_unique<RealDisk>(kSurvivals[moment / 2 % 2]));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(ClaimDiskTest, AnOutageAtAnyMomentLeavesNoClaimUnknown) {
  // With scale 1 every second pair of moment and outage.
  const std::uint64_t stride = TestScale() == 1 ? 2 : 1;
  int lives = 0;
  for (const OutageScenario& scenario : Scenarios()) {
    lives += PlayWithOutages(scenario, stride);
    ASSERT_FALSE(HasFailure());
  }
  lives += PlayWithOutages(Forgiven(), stride);
  fmt::print("{} lives\n", lives);
  EXPECT_GE(lives, 500);
}

// Several outages in one life, and answers in any order.
TEST(ClaimDiskTest, OutageAfterOutageLeavesNoClaimUnknown) {
  const std::vector<OutageScenario> scenarios = Scenarios();
  LiveEach({20'261'122, 200}, [&](Luck& luck) {
    const OutageScenario& scenario = luck.Pick(scenarios);
    SCOPED_TRACE(scenario.name);
    Outages outages;
    for (std::uint64_t moment = 0; outages.size() < 5;) {
      moment += 1 + luck.Below(20);
      outages[moment] = static_cast<Outage>(luck.Below(kOutages));
    }
    Play(scenario, outages, luck() | 1);
  });
}

}  // namespace
}  // namespace devmgr
