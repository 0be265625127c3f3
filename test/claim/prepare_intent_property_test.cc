// SPDX-License-Identifier: Apache-2.0
//
// Random lives of a few pods that share claims: whatever the order of events,
// the invariants hold after each step, answers stay as they were given, and in
// the end nothing is left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "claim/prepare_intent.h"
#include "claim/release.h"
#include "support/builders.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::PodPhase;

constexpr int kPods = 5;
constexpr int kClaims = 4;
const std::array<std::string, 3> kDrivers = {"a", "b", "c"};

class RandomLife {
 public:
  explicit RandomLife(Luck& luck) : luck_(luck) {
    for (int claim = 0; claim < kClaims; ++claim) RecreateClaim(claim);
    for (int pod = 0; pod < kPods; ++pod) RecreatePod(pod);
  }

  std::vector<RandomStep> Steps() {
    return {{"see", 8, [this] { See(); }},
            {"book", 24, [this] { Book(true); }},
            {"book without a plan", 8, [this] { Book(false); }},
            {"prepare", 16, [this] { Prepare(); }},
            {"release", 8, [this] { Release(); }},
            {"unprepare", 16, [this] { Unprepare(); }},
            {"forget", 8, [this] { Forget(); }},
            {"claim", 2, [this] { RecreateClaim(luck_.Below(kClaims)); }},
            {"pod", 2, [this] { RecreatePod(luck_.Below(kPods)); }},
            {"reboot", 2, [this] { Reboot(); }},
            {"reject", 2, [this] { Reject(); }}};
  }

  void CheckAnswers() {
    for (const auto& [uid, pod] : ledger_.state().pods) {
      if (pod->phase != PodPhase::kReady) continue;
      const auto [known, fresh] =
          answers_.emplace(std::pair(uid, pod->boot_id), pod->answer);
      if (!fresh) {
        ASSERT_EQ(*known->second, *pod->answer) << uid.value;
      }
    }
  }

  /// Ends all pods; drivers answer everything they are asked.
  void Drain() {
    const auto pods = ledger_.state().pods;  // a copy
    for (const auto& [uid, pod] : pods) {
      ledger_.Take(BeginRelease(ledger_.state(), uid));
    }
    for (const std::string& driver : kDrivers) {
      std::set<ClaimUid> claims;
      for (const auto& [uid, claim] : ledger_.state().claims) {
        claims.insert(uid);
      }
      ledger_.Take(RecordUnprepared(ledger_.state(), driver, claims));
    }
    for (const auto& [uid, pod] : pods) {
      const auto forgotten = ForgetPod(ledger_.state(), uid);
      ASSERT_THAT(forgotten, IsOk());
      ledger_.Take(*forgotten);
    }
    EXPECT_THAT(ledger_.state().pods, testing::IsEmpty());
    EXPECT_THAT(ledger_.state().claims, testing::IsEmpty());
  }

  int ready_seen() const { return static_cast<int>(answers_.size()); }

 private:
  struct PodModel {
    PodIdentity identity;
    std::vector<int> claims;
  };

  PodModel& SomePod() { return pods_[luck_.Below(kPods)]; }

  void RecreateClaim(std::size_t claim) {
    PlannedClaim& planned = claims_[claim];
    planned.name = NameOf("claim-" + std::to_string(claim));
    planned.uid = ClaimUid{planned.name.name + "-" + std::to_string(++made_)};
    planned.drivers = RandomDrivers();
  }

  std::vector<std::string> RandomDrivers() {
    std::vector<std::string> drivers;
    for (const std::string& driver : kDrivers) {
      if (luck_.Chance(50)) drivers.push_back(driver);
    }
    return drivers;
  }

  /// Another pod under the same name; the old one may still be there.
  void RecreatePod(std::size_t pod) {
    PodModel& model = pods_[pod];
    model.identity.name = NameOf("pod-" + std::to_string(pod));
    model.identity.uid =
        PodUid{model.identity.name.name + "-" + std::to_string(++made_)};
    model.claims.clear();
    for (int claim = 0; claim < kClaims; ++claim) {
      if (luck_.Chance(40)) model.claims.push_back(claim);
    }
  }

  PodPlan PlanOf(const PodModel& pod) {
    PodPlan plan;
    state::ContainerNeed need{"c", false, {}};
    for (const int claim : pod.claims) {
      plan.claims.push_back(claims_[claim]);
      // Objects are foreign input: an allocation may change under us.
      if (luck_.Chance(5)) plan.claims.back().drivers = RandomDrivers();
      need.wants.push_back(
          {claims_[claim].uid, luck_.Chance(50) ? "" : "r", ""});
    }
    plan.needs = {need, {"idle", false, {}}};
    return plan;
  }

  void See() {
    ledger_.Take(RecordSeen(ledger_.state(), SomePod().identity, 1, "waits"));
  }

  void Book(bool with_plan) {
    const PodModel& pod = SomePod();
    const PodPlan plan = PlanOf(pod);
    const auto booked = BookPod(ledger_.state(), pod.identity, 1,
                                with_plan ? &plan : nullptr, ledger_.boot_id());
    if (!booked.ok()) {
      EXPECT_THAT(booked, testing::AnyOf(
                              StatusIs(absl::StatusCode::kNotFound),
                              StatusIs(absl::StatusCode::kFailedPrecondition)));
      return;
    }
    ledger_.Take(booked->decision);
  }

  /// The driver answers for some claims, asked for or not.
  void Prepare() {
    const std::string& driver = luck_.Pick(kDrivers);
    std::map<ClaimUid, std::vector<state::PreparedDevice>> prepared;
    for (const auto& [uid, claim] : ledger_.state().claims) {
      if (!luck_.Chance(70)) continue;
      prepared[uid];
      if (luck_.Chance(80)) {
        prepared[uid].push_back(
            Prepared("dev", {driver + ".x/y=" + std::to_string(++made_)},
                     {luck_.Chance(50) ? "r" : "s"}));
      }
    }
    if (luck_.Chance(10)) prepared[ClaimUid{"unknown"}];
    ledger_.Take(
        RecordPrepared(ledger_.state(), driver, prepared, ledger_.boot_id()));
  }

  void Release() {
    ledger_.Take(BeginRelease(ledger_.state(), SomePod().identity.uid));
  }

  void Unprepare() {
    const std::string& driver = luck_.Pick(kDrivers);
    std::set<ClaimUid> unprepared;
    for (const auto& [uid, claim] : ledger_.state().claims) {
      if (luck_.Chance(70)) unprepared.insert(uid);
    }
    if (luck_.Chance(10)) unprepared.insert(ClaimUid{"unknown"});
    ledger_.Take(RecordUnprepared(ledger_.state(), driver, unprepared));
  }

  /// As the manager: a pod that holds nothing, once it was released.
  void Forget() {
    const std::size_t pod = luck_.Below(kPods);
    const auto decision = ForgetPod(ledger_.state(), pods_[pod].identity.uid);
    if (!decision.ok()) {
      EXPECT_THAT(decision, StatusIs(absl::StatusCode::kFailedPrecondition));
      return;
    }
    if (ledger_.Take(*decision)) RecreatePod(pod);
  }

  void Reboot() {
    if (luck_.Chance(30)) ledger_.Reboot("boot-" + std::to_string(++made_));
  }
  void Reject() {
    const auto rejected =
        RejectPod(ledger_.state(), SomePod().identity, 1,
                  {Verdict::Kind::kReject, "Reason", "text", {}});
    if (rejected.ok()) ledger_.Take(*rejected);
  }

  Luck& luck_;
  TestLedger ledger_;
  std::array<PlannedClaim, kClaims> claims_;
  std::array<PodModel, kPods> pods_;
  std::map<std::pair<PodUid, std::string>, std::shared_ptr<const PodDevices>>
      answers_;
  int made_ = 0;
};

TEST(BookingPropertyTest, RandomLivesKeepTheInvariantsAndLeaveNothingBehind) {
  constexpr RandomLives kLives = {20'261'121, 1'000};
  int ready_seen = 0;
  const bool whole = LiveEach(kLives, [&](Luck& luck) {
    RandomLife life(luck);
    TakeSteps(150, luck, life.Steps(), [&] { life.CheckAnswers(); });
    if (!testing::Test::HasFailure()) life.Drain();
    ready_seen += life.ready_seen();
  });
  // The lives are worth something only if pods come to be Ready in them.
  if (whole) {
    EXPECT_GT(ready_seen, kLives.count());
  }
}

}  // namespace
}  // namespace devmgr::claim
