// SPDX-License-Identifier: Apache-2.0
//
// Random lives of a few pods that share claims: whatever the order of events,
// the invariants hold after each step, answers stay as they were given, and in
// the end nothing is left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "claim/booking.h"
#include "claim/release.h"
#include "support/builders.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"
#include "support/test_scale.h"

namespace devmgr::claim {
namespace {

using state::DriverPhase;
using state::PodPhase;

constexpr int kPods = 5;
constexpr int kClaims = 4;
constexpr int kSteps = 150;
constexpr int kRuns = 1'000;
const std::array<std::string, 3> kDrivers = {"a", "b", "c"};

class RandomLife {
 public:
  explicit RandomLife(std::uint32_t seed) : random_(seed) {
    for (int claim = 0; claim < kClaims; ++claim) RecreateClaim(claim);
    for (int pod = 0; pod < kPods; ++pod) RecreatePod(pod);
  }

  void Step() {
    switch (Below(12)) {
      case 0:
        return See(Below(kPods));
      case 1:
      case 2:
      case 3:
        return Book(Below(kPods), true);
      case 4:
        return Book(Below(kPods), false);
      case 5:
      case 6:
        return Prepare(kDrivers[Below(kDrivers.size())]);
      case 7:
        return Release(Below(kPods));
      case 8:
      case 9:
        return Unprepare(kDrivers[Below(kDrivers.size())]);
      case 10:
        return Forget(Below(kPods));
      default:
        return Rarely();
    }
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

  std::size_t Below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  bool Chance(int percent) { return Below(100) < std::size_t(percent); }

  void RecreateClaim(std::size_t claim) {
    PlannedClaim& planned = claims_[claim];
    planned.name = NameOf("claim-" + std::to_string(claim));
    planned.uid = ClaimUid{planned.name.name + "-" + std::to_string(++made_)};
    planned.drivers = RandomDrivers();
  }

  std::vector<std::string> RandomDrivers() {
    std::vector<std::string> drivers;
    for (const std::string& driver : kDrivers) {
      if (Chance(50)) drivers.push_back(driver);
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
      if (Chance(40)) model.claims.push_back(claim);
    }
  }

  PodPlan PlanOf(const PodModel& pod) {
    PodPlan plan;
    state::ContainerNeed need{"c", false, {}};
    for (const int claim : pod.claims) {
      plan.claims.push_back(claims_[claim]);
      // Objects are foreign input: an allocation may change under us.
      if (Chance(5)) plan.claims.back().drivers = RandomDrivers();
      need.wants.push_back({claims_[claim].uid, Chance(50) ? "" : "r", ""});
    }
    plan.needs = {need, {"idle", false, {}}};
    return plan;
  }

  void See(std::size_t pod) {
    ledger_.Take(RecordSeen(ledger_.state(), pods_[pod].identity, 1, "waits"));
  }

  void Book(std::size_t pod, bool with_plan) {
    const PodPlan plan = PlanOf(pods_[pod]);
    const auto booked = BookPod(ledger_.state(), pods_[pod].identity, 1,
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
  void Prepare(const std::string& driver) {
    std::map<ClaimUid, std::vector<state::PreparedDevice>> prepared;
    for (const auto& [uid, claim] : ledger_.state().claims) {
      if (!Chance(70)) continue;
      prepared[uid];
      if (Chance(80)) {
        prepared[uid].push_back(
            Prepared("dev", {driver + ".x/y=" + std::to_string(++made_)},
                     {Chance(50) ? "r" : "s"}));
      }
    }
    if (Chance(10)) prepared[ClaimUid{"unknown"}];
    ledger_.Take(
        RecordPrepared(ledger_.state(), driver, prepared, ledger_.boot_id()));
  }

  void Release(std::size_t pod) {
    ledger_.Take(BeginRelease(ledger_.state(), pods_[pod].identity.uid));
  }

  void Unprepare(const std::string& driver) {
    std::set<ClaimUid> unprepared;
    for (const auto& [uid, claim] : ledger_.state().claims) {
      if (Chance(70)) unprepared.insert(uid);
    }
    if (Chance(10)) unprepared.insert(ClaimUid{"unknown"});
    ledger_.Take(RecordUnprepared(ledger_.state(), driver, unprepared));
  }

  /// As the manager: a pod that holds nothing, once it was released.
  void Forget(std::size_t pod) {
    const auto decision = ForgetPod(ledger_.state(), pods_[pod].identity.uid);
    if (!decision.ok()) {
      EXPECT_THAT(decision, StatusIs(absl::StatusCode::kFailedPrecondition));
      return;
    }
    if (ledger_.Take(*decision)) RecreatePod(pod);
  }

  void Rarely() {
    switch (Below(4)) {
      case 0:
        return RecreateClaim(Below(kClaims));
      case 1:
        return RecreatePod(Below(kPods));
      case 2:
        if (Chance(30)) ledger_.Reboot("boot-" + std::to_string(++made_));
        return;
      default:
        const auto rejected =
            RejectPod(ledger_.state(), pods_[Below(kPods)].identity, 1,
                      {Verdict::Kind::kReject, "Reason", "text", {}});
        if (rejected.ok()) ledger_.Take(*rejected);
    }
  }

  std::mt19937 random_;
  TestLedger ledger_;
  std::array<PlannedClaim, kClaims> claims_;
  std::array<PodModel, kPods> pods_;
  std::map<std::pair<PodUid, std::string>, std::shared_ptr<const PodDevices>>
      answers_;
  int made_ = 0;
};

TEST(BookingPropertyTest, RandomLivesKeepTheInvariantsAndLeaveNothingBehind) {
  const std::uint32_t seed = TestSeed(20'261'121);
  const std::uint32_t runs = kRuns * TestScale();
  std::printf("seeds %u to %u\n", seed, seed + runs - 1);
  int ready_seen = 0;
  for (std::uint32_t run = 0; run < runs; ++run) {
    SCOPED_TRACE("DEVMGR_TEST_SEED=" + std::to_string(seed + run));
    RandomLife life(seed + run);
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      life.Step();
      life.CheckAnswers();
      if (testing::Test::HasFailure()) return;
    }
    life.Drain();
    if (testing::Test::HasFailure()) return;
    ready_seen += life.ready_seen();
  }
  // The lives are worth something only if pods come to be Ready in them.
  EXPECT_GT(ready_seen, static_cast<int>(runs));
}

}  // namespace
}  // namespace devmgr::claim
