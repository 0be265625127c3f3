// SPDX-License-Identifier: Apache-2.0
//
// Random lives of pods and of containers that hold devices without them: no
// decision lets two have one device (the test ledger checks the invariants
// after each), and what no pod or container has can be had.
#include "claim/foreign_holders.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "claim/device_booking.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

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

class Life {
 public:
  explicit Life(Luck& luck) : luck_(luck) {}

  std::vector<RandomStep> Steps() {
    return {{"reserve", 2, [this] { return Reserve(); }},
            {"commit", 1, [this] { return Commit(); }},
            {"end", 1, [this] { return End(); }},
            {"report", 1, [this] { return Report(); }},
            {"settle", 1, [this] { return Settle(); }},
            {"free", 1, [this] { return Free(); }}};
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
  std::string Pod() { return fmt::format("pod-{}", luck_.Below(4)); }
  std::set<std::string> Devices() {
    std::set<std::string> devices;
    for (std::size_t n = luck_.Below(3) + 1; n > 0; --n) {
      devices.insert(fmt::format("{}", luck_.Below(5)));
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
  void Settle() { ledger_.Take(SettleHolders(state(), PodUid{Pod()})); }
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
    reported.endpoint = luck_.Below(4) == 0 ? "/r2" : "/r1";
    reported.all = luck_.Below(2) == 0;
    for (std::size_t n = luck_.Below(3); n > 0; --n) {
      reported.holders.push_back(
          Holder(fmt::format("c{}", luck_.Below(4)), Pod(), Devices()));
    }
    ledger_.Take(JudgeHolders(state(), reported, 1));
    // The same again has nothing to add.
    EXPECT_FALSE(ledger_.Take(JudgeHolders(state(), reported, 2)));
  }
  void Free() {
    const auto decision =
        FreeHolder(state(), fmt::format("c{}", luck_.Below(4)), "why");
    if (decision.ok()) ledger_.Take(*decision);
  }

  Luck& luck_;
  TestLedger ledger_;
};

TEST(ForeignDecisionsTest, RandomLivesKeepTheInvariants) {
  LiveEach({0, 300}, [](Luck& luck) {
    Life life(luck);
    TakeSteps(40, luck, life.Steps());
    life.EndAll();
  });
}

}  // namespace
}  // namespace devmgr::claim
