// SPDX-License-Identifier: Apache-2.0
//
// Random lives of pods and of containers that hold devices without them: no
// decision lets two have one device (the test ledger checks the invariants
// after each), and what no pod or container has can be had.
#include "claim/foreign_decisions.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "claim/device_booking.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"
#include "support/test_scale.h"

namespace devmgr::claim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTpuResource[] = "example.com/tpu";

state::ForeignHolderRecord Holder(const std::string& id, const std::string& pod,
                                  const std::set<std::string>& devices) {
  state::ForeignHolderRecord holder;
  holder.id.value = id;
  holder.pod_uid.value = pod;
  holder.pod = {"default", pod};
  holder.container = "main";
  for (const std::string& device : devices) {
    holder.devices.emplace(kTpuResource, device);
  }
  return holder;
}

device::Reservation ReservationOf(const std::string& pod,
                                  const std::set<std::string>& devices) {
  device::Reservation reservation;
  reservation.pod.value = pod;
  reservation.container = "main";
  reservation.resource = kTpuResource;
  for (const std::string& device : devices) {
    reservation.devices.push_back({device, {}});
  }
  return reservation;
}

TEST(ForeignDecisionsTest, AReservationLosesAgainstAContainer) {
  TestLedger ledger;
  ASSERT_TRUE(ledger.Take(JudgeHolders(
      ledger.state(), {"/r", {Holder("c", "stray", {"0"})}, true}, 7)));
  const auto reserve = [&](const std::string& pod) {
    return claim::ReserveDevices(
        ledger.state(), {PodUid{pod}, {"default", pod}}, 1,
        {ReservationOf(pod, {"0"})}, claim::Sharing::kOneOwner);
  };
  EXPECT_THAT(reserve("other"),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("foreign container c (pod default/stray)")));
  EXPECT_THAT(reserve("stray"), IsOk());
}

class Lives {
 public:
  explicit Lives(std::uint32_t seed) : random_(seed) {}

  void Step() {
    switch (random_() % 7) {
      case 0:
      case 1:
        return Reserve();
      case 2:
        return Commit();
      case 3:
        return End();
      case 4:
        return Report();
      case 5:
        ledger_.Take(SettleHolders(ledger_.state(), PodUid{Pod()}));
        return;
      default:
        return Free();
    }
  }

  /// All containers end, then all pods: nothing is left.
  void EndAll() {
    for (const char* endpoint : {"/r1", "/r2"}) {
      ledger_.Take(JudgeHolders(ledger_.state(), {endpoint, {}, true}, 1));
    }
    EXPECT_THAT(ledger_.state().foreign_holders, IsEmpty());
    EXPECT_THAT(ledger_.state().foreign_devices, IsEmpty());
  }

  const state::State& state() const { return ledger_.state(); }

 private:
  std::string Pod() { return fmt::format("pod-{}", random_() % 4); }
  std::set<std::string> Devices() {
    std::set<std::string> devices;
    for (std::uint32_t n = random_() % 3 + 1; n > 0; --n) {
      devices.insert(fmt::format("{}", random_() % 5));
    }
    return devices;
  }

  void Reserve() {
    const std::string pod = Pod();
    const auto decision = claim::ReserveDevices(
        state(), {PodUid{pod}, {"default", pod}}, 1,
        {ReservationOf(pod, Devices())}, claim::Sharing::kOneOwner);
    if (decision.ok()) ledger_.Take(*decision);
  }
  void Commit() {
    const PodUid pod{Pod()};
    const auto decision =
        claim::CommitDevices(state(), pod, {{{"main", kTpuResource}, {}}});
    if (decision.ok()) ledger_.Take(*decision);
    ledger_.Take(SettleHolders(state(), pod));
  }
  void End() {
    const PodUid pod{Pod()};
    const state::PodRecord* record = state().FindPod(pod);
    if (record == nullptr) return;
    state::Decision decision;
    decision.kind = state::DecisionKind::kRelease;
    decision.changes = {state::ErasePod{pod}};
    ledger_.Take(decision);
  }
  void Report() {
    ReportedHolders reported;
    reported.endpoint = random_() % 4 == 0 ? "/r2" : "/r1";
    reported.all = random_() % 2 == 0;
    for (std::uint32_t n = random_() % 3; n > 0; --n) {
      reported.holders.push_back(
          Holder(fmt::format("c{}", random_() % 4), Pod(), Devices()));
    }
    ledger_.Take(JudgeHolders(state(), reported, 1));
    // The same again has nothing to add.
    EXPECT_FALSE(ledger_.Take(JudgeHolders(state(), reported, 2)));
  }
  void Free() {
    const auto decision =
        FreeHolder(state(), fmt::format("c{}", random_() % 4), "why");
    if (decision.ok()) ledger_.Take(*decision);
  }

  std::mt19937 random_;  // NOLINT: the same lives each time
  TestLedger ledger_;
};

TEST(ForeignDecisionsTest, RandomLivesKeepTheInvariants) {
  for (int seed = 0; seed < 300 * TestScale(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Lives lives(static_cast<std::uint32_t>(seed));
    for (int step = 0; step < 40; ++step) {
      lives.Step();
      if (::testing::Test::HasFailure()) return;
    }
    lives.EndAll();
  }
}

}  // namespace
}  // namespace devmgr::claim
