// SPDX-License-Identifier: Apache-2.0
#include "view/device_changes.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "state/record_builders.h"
#include "support/held_by_stream.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"
#include "view/change_replay.h"

namespace devmgr::view {
namespace {

using device::ReservationPhase;
using state::Batch;
using state::Change;
using state::ClaimRecord;
using state::DecisionKind;
using state::DriverPhase;
using state::PodPhase;
using state::PodRecord;
using state::Put;
using state::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTpu[] = "example.com/tpu";

state::DeviceHold Hold(const std::string& container,
                       const std::vector<std::string>& devices,
                       ReservationPhase phase = ReservationPhase::kCommitted) {
  state::DeviceHold hold;
  hold.container = container;
  hold.resource = kTpu;
  hold.phase = phase;
  for (const std::string& device : devices)
    hold.devices.push_back({device, {}});
  if (phase == ReservationPhase::kCommitted) {
    hold.edits.cdi_devices = {"example.com/tpu=" + devices.front()};
  }
  return hold;
}

PodRecord PodWith(const PodUid& uid, std::vector<state::DeviceHold> holds) {
  PodRecord pod = state::MakePod(uid, uid.value, PodPhase::kAdmitted);
  pod.claims.clear();
  pod.needs.clear();
  pod.holds = std::move(holds);
  return pod;
}

/// `Allocated pod-a/main example.com/tpu: d0,d1`.
std::string Text(const DeviceChange& change) {
  std::string devices;
  for (const DeviceId& device : change.devices) {
    if (!devices.empty()) devices += ",";
    devices += device.value;
  }
  const std::string owner = change.driver.empty()
                                ? change.resource.value
                                : change.driver + "/" + change.pool;
  return fmt::format("{} {}/{} {}: {}", change.kind.name(),
                     change.pod_uid.value, change.container.value, owner,
                     devices);
}

class DeviceChangesTest : public testing::Test {
 protected:
  /// The changes of a decision.
  std::vector<DeviceChange> Decide(DecisionKind kind,
                                   std::vector<Change> changes) {
    Batch batch = state::MakeBatch(state_.seq + 1, kind, std::move(changes));
    const State before = state_;
    EXPECT_THAT(state::ApplyNew(state_, batch), IsOk());
    auto found = ChangesOf(before, state_, batch);
    stream_.Take(found);
    EXPECT_EQ(stream_.complaint(), "");
    all_.insert(all_.end(), found.begin(), found.end());
    history_.push_back(std::move(batch));
    ExpectHeld(state_, stream_);
    return found;
  }
  std::vector<std::string> Texts(const std::vector<DeviceChange>& changes) {
    std::vector<std::string> texts;
    for (const DeviceChange& change : changes) texts.push_back(Text(change));
    return texts;
  }

  /// What the reader of the changes holds to be held is so.
  static void ExpectHeld(const State& state, const HeldByStream& stream) {
    HeldByStream snapshot;
    snapshot.Take(HoldingsOf(state, {}));
    EXPECT_EQ(stream.held(), snapshot.held());
  }

  state::ReadHistory Read() const {
    return [this](std::uint64_t after,
                  std::size_t most) -> absl::StatusOr<std::vector<Batch>> {
      return state::BatchesAfter(history_, after, most);
    };
  }

  State state_;
  HeldByStream stream_;
  std::vector<DeviceChange> all_;
  std::vector<Batch> history_;
};

TEST_F(DeviceChangesTest, DevicesOfPluginsAreAllocatedWhenTheyAreCommitted) {
  EXPECT_THAT(
      Decide(DecisionKind::kReserve,
             {Put(PodWith(state::kPodA, {Hold("main", {"d10", "d2"},
                                              ReservationPhase::kReserved)}))}),
      IsEmpty());
  const auto allocated =
      Decide(DecisionKind::kAllocated,
             {Put(PodWith(state::kPodA, {Hold("main", {"d10", "d2"})}))});
  ASSERT_EQ(allocated.size(), 1u);
  const DeviceChange& change = allocated.front();
  EXPECT_EQ(Text(change), "Allocated pod-a/main example.com/tpu: d2,d10");
  EXPECT_EQ(change.pod, (ObjectName{"default", "pod-a"}));
  EXPECT_THAT(change.cdi_devices, ElementsAre("example.com/tpu=d10"));
  EXPECT_EQ(change.reason, "Allocated");
  EXPECT_EQ(change.token, ChangeToken{2});
  EXPECT_EQ(change.time,
            WallTime(std::chrono::milliseconds(1'700'000'000'002)));
  // Written again for another reason.
  EXPECT_THAT(
      Decide(DecisionKind::kEvict,
             {Put(PodWith(state::kPodA, {Hold("main", {"d10", "d2"})}))}),
      IsEmpty());
  EXPECT_THAT(
      Texts(Decide(DecisionKind::kRelease, {state::ErasePod{state::kPodA}})),
      ElementsAre("Released pod-a/main example.com/tpu: d2,d10"));
}

TEST_F(DeviceChangesTest, InitContainersGiveBackWhatTheOthersHaveNot) {
  Decide(DecisionKind::kAllocated,
         {Put(PodWith(state::kPodA,
                      {Hold("init", {"d0", "d1"}), Hold("main", {"d0"})}))});
  EXPECT_THAT(Texts(Decide(
                  DecisionKind::kInitEnded,
                  {Put(PodWith(state::kPodA, {Hold("init", {"d0", "d1"},
                                                   ReservationPhase::kReleased),
                                              Hold("main", {"d0"})}))})),
              ElementsAre("Released pod-a/init example.com/tpu: d0,d1"));
}

TEST_F(DeviceChangesTest, WhatPassesFromPodToPodIsReleasedFirst) {
  Decide(DecisionKind::kAllocated,
         {Put(PodWith(state::kPodB, {Hold("main", {"d0", "d1"})}))});
  const auto changes =
      Decide(DecisionKind::kRepair,
             {Put(PodWith(state::kPodA, {Hold("main", {"d0"})})),
              Put(PodWith(state::kPodB, {Hold("main", {"d1"})}))});
  EXPECT_THAT(Texts(changes),
              ElementsAre("Released pod-b/main example.com/tpu: d0",
                          "Allocated pod-a/main example.com/tpu: d0"));
  EXPECT_EQ(changes[0].token, (ChangeToken{2, 1}));
  EXPECT_EQ(changes[1].token, ChangeToken{2});
}

/// Of two drivers' parts one is prepared at first.
TEST_F(DeviceChangesTest, DevicesOfClaimsAreHeldFromPreparedToUnprepared) {
  ClaimRecord claim = state::MakeClaim(DriverPhase::kPreparing, {state::kPodA});
  EXPECT_THAT(Decide(DecisionKind::kPrepareIntent,
                     {Put(claim), Put(state::MakePod(state::kPodA, "a",
                                                     PodPhase::kPreparing))}),
              IsEmpty());
  claim = state::MakeClaim(DriverPhase::kPrepared, {state::kPodA});
  const auto allocated = Decide(DecisionKind::kPrepareResult, {Put(claim)});
  ASSERT_EQ(allocated.size(), 1u);
  EXPECT_EQ(Text(allocated[0]),
            "Allocated pod-a/main d.example.com/pool: gpu-0");
  EXPECT_EQ(allocated[0].claim_uid, state::kGpu);
  EXPECT_EQ(allocated[0].resource, "example.com/gpu");
  EXPECT_EQ(allocated[0].share_id, "share-1");
  EXPECT_THAT(allocated[0].cdi_devices, ElementsAre("example.com/gpu=gpu-0"));

  // Another pod comes to share it, and leaves.
  claim.pods = {state::kPodA, state::kPodB};
  EXPECT_THAT(
      Texts(Decide(DecisionKind::kPrepareIntent,
                   {Put(claim), Put(state::MakePod(state::kPodB, "b",
                                                   PodPhase::kPreparing))})),
      ElementsAre("Allocated pod-b/main d.example.com/pool: gpu-0"));
  claim.pods = {state::kPodA};
  EXPECT_THAT(Texts(Decide(DecisionKind::kRelease,
                           {Put(claim), state::ErasePod{state::kPodB}})),
              ElementsAre("Released pod-b/main d.example.com/pool: gpu-0"));

  // Its driver still has it while it is being unprepared.
  claim.drivers.at(state::kDriver).phase = DriverPhase::kUnpreparing;
  PodRecord pod = state::MakePod(state::kPodA, "a", PodPhase::kPreparing);
  pod.phase = PodPhase::kReleasing;
  EXPECT_THAT(Decide(DecisionKind::kUnprepareIntent, {Put(claim), Put(pod)}),
              IsEmpty());
  pod.claims.clear();
  EXPECT_THAT(Texts(Decide(DecisionKind::kUnprepareResult,
                           {state::EraseClaim{state::kGpu}, Put(pod)})),
              ElementsAre("Released pod-a/main d.example.com/pool: gpu-0"));
}

TEST_F(DeviceChangesTest, WhatIsPreparedAnewIsReleasedMeanwhile) {
  ClaimRecord claim = state::MakeClaim(DriverPhase::kPrepared, {state::kPodA});
  Decide(DecisionKind::kPrepareResult,
         {Put(claim),
          Put(state::MakePod(state::kPodA, "a", PodPhase::kPreparing))});
  auto& driver = claim.drivers.at(state::kDriver);
  driver = driver.Anew();
  EXPECT_THAT(Texts(Decide(DecisionKind::kPrepareIntent, {Put(claim)})),
              ElementsAre("Released pod-a/main d.example.com/pool: gpu-0"));
  EXPECT_THAT(
      Texts(Decide(
          DecisionKind::kPrepareResult,
          {Put(state::MakeClaim(DriverPhase::kPrepared, {state::kPodA}))})),
      ElementsAre("Allocated pod-a/main d.example.com/pool: gpu-0"));
}

TEST_F(DeviceChangesTest, ADeviceThatNoContainerUsesIsThePods) {
  PodRecord pod = state::MakePod(state::kPodA, "a", PodPhase::kPreparing);
  pod.needs.clear();
  EXPECT_THAT(
      Texts(
          Decide(DecisionKind::kPrepareResult,
                 {Put(state::MakeClaim(DriverPhase::kPrepared, {state::kPodA})),
                  Put(pod)})),
      ElementsAre("Allocated pod-a/ d.example.com/pool: gpu-0"));
}

TEST_F(DeviceChangesTest, HandOversSayFromWhomToWhom) {
  state::ResourceRecord record;
  record.name = kTpu;
  const auto first = Decide(DecisionKind::kBacking, {Put(record)});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].owner, ResourceOwner::kDevicePlugin);
  EXPECT_FALSE(first[0].former_owner.has_value());
  record.by_operator = "the plugin is retired";
  EXPECT_THAT(Decide(DecisionKind::kBacking, {Put(record)}), IsEmpty());
  record.backing = state::Backing::kClass;
  const auto second = Decide(DecisionKind::kBacking, {Put(record)});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].kind, DeviceChangeKind::kHandedOver);
  EXPECT_EQ(second[0].resource, kTpu);
  EXPECT_EQ(second[0].owner, ResourceOwner::kDeviceClass);
  EXPECT_EQ(second[0].former_owner, ResourceOwner::kDevicePlugin);
  EXPECT_EQ(second[0].message, "the plugin is retired");
}

TEST_F(DeviceChangesTest, WhatTheLedgerKeepsOfHealthIsAChange) {
  Decide(DecisionKind::kPrepareResult,
         {Put(state::MakeClaim(DriverPhase::kPrepared, {state::kPodA})),
          Put(state::MakePod(state::kPodA, "a", PodPhase::kPreparing))});
  state::HealthRecord health;
  health.driver = state::kDriver;
  health.pool = "pool";
  health.device = "gpu-0";
  health.health = device::Health::kHealthy;
  EXPECT_THAT(Decide(DecisionKind::kHealth, {Put(health)}), IsEmpty());
  health.health = device::Health::kUnhealthy;
  health.message = "too hot";
  const auto broken = Decide(DecisionKind::kHealth, {Put(health)});
  EXPECT_THAT(Texts(broken),
              ElementsAre("HealthChanged pod-a/ d.example.com/pool: gpu-0"));
  EXPECT_EQ(broken[0].health, DeviceHealth::kUnhealthy);
  EXPECT_EQ(broken[0].message, "too hot");
  health.message = "still too hot";
  EXPECT_THAT(Decide(DecisionKind::kHealth, {Put(health)}), IsEmpty());
  EXPECT_THAT(
      Texts(Decide(DecisionKind::kHealth, {state::EraseHealth{health.Key()}})),
      ElementsAre("HealthChanged pod-a/ d.example.com/pool: gpu-0"));
}

// Changes from the history.

TEST_F(DeviceChangesTest, TheHistoryGivesTheSameAfterEachToken) {
  for (int i = 0; i < 20; ++i) {
    const PodUid pod{fmt::format("pod-{}", i)};
    Decide(DecisionKind::kAllocated,
           {Put(PodWith(pod, {Hold("init", {fmt::format("d{}", i)}),
                              Hold("main", {fmt::format("d{}", i)})}))});
    if (i % 3 == 0) Decide(DecisionKind::kRelease, {state::ErasePod{pod}});
    if (i % 4 == 0) Decide(DecisionKind::kWanted, {});
  }
  for (std::size_t known = 0; known <= all_.size(); ++known) {
    const ChangeToken token =
        known == 0 ? ChangeToken{0} : all_[known - 1].token;
    auto then = StateOf(state_, token, Read());
    ASSERT_THAT(then, IsOk());
    std::vector<std::string> rest;
    DeviceChanges part;
    part.next = token;
    do {
      auto replay =
          ReplayChanges(*std::move(then), part.next, state_.seq, 3, Read());
      ASSERT_THAT(replay, IsOk());
      then = std::move(replay->then);
      part = std::move(replay->found);
      // Whoever goes on later finds the same state.
      auto again = StateOf(state_, part.next, Read());
      ASSERT_THAT(again, IsOk());
      if (part.more) {
        EXPECT_TRUE(*again == *then);
      }
      for (const DeviceChange& change : part.changes) {
        rest.push_back(change.token.ToString() + " " + Text(change));
      }
    } while (part.more);
    EXPECT_EQ(part.next, ChangeToken{state_.seq});
    std::vector<std::string> expected;
    for (std::size_t i = known; i < all_.size(); ++i) {
      expected.push_back(all_[i].token.ToString() + " " + Text(all_[i]));
    }
    EXPECT_EQ(rest, expected);
  }
}

TEST_F(DeviceChangesTest, ATokenThatTheHistoryDoesNotReachIsTooOld) {
  for (int i = 0; i < 6; ++i) {
    Decide(DecisionKind::kAllocated,
           {Put(PodWith(PodUid{fmt::format("pod-{}", i)},
                        {Hold("main", {fmt::format("d{}", i)})}))});
  }
  history_.erase(history_.begin(), history_.begin() + 3);
  const auto too_old = StatusIs(absl::StatusCode::kOutOfRange,
                                testing::HasSubstr("start from a snapshot"));
  EXPECT_THAT(StateOf(state_, {2}, Read()), too_old);
  EXPECT_THAT(StateOf(state_, {3}, Read()), IsOk());
  // All of 3, and so what comes after it, but not within it.
  EXPECT_THAT(StateOf(state_, {3, 1}, Read()), too_old);
  EXPECT_THAT(StateOf(state_, {7}, Read()),
              StatusIs(absl::StatusCode::kOutOfRange,
                       testing::HasSubstr("of another ledger")));
  const auto earliest = state::EarliestState(state_, Read());
  ASSERT_THAT(earliest, IsOk());
  EXPECT_EQ(earliest->seq, 3u);
  // The history goes on being dropped while a reader is within it.
  history_.erase(history_.begin());
  EXPECT_THAT(ReplayChanges(*earliest, {3}, state_.seq, 9, Read()), too_old);
}

// The property: what is allocated is released once, or still held.

/// A ledger in which anything may happen to pods and claims.
class RandomLedger {
 public:
  explicit RandomLedger(Luck& luck) : luck_(luck) {}

  std::vector<Change> Next(const State& state) {
    std::vector<Change> changes;
    const int count = 1 + static_cast<int>(luck_.Below(3));
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("{}-{}", i, luck_.Below(3));
      if (luck_.Below(2) == 0) {
        AddPod(state, PodUid{"pod-" + name}, &changes);
      } else {
        AddClaim(state, ClaimUid{"claim-" + name}, &changes);
      }
    }
    return changes;
  }

 private:
  /// Not twice in one batch.
  static bool IsThere(const std::vector<Change>& changes, const PodUid& uid) {
    return std::any_of(
        changes.begin(), changes.end(), [&](const Change& change) {
          const auto* put = std::get_if<state::PutPod>(&change);
          const auto* erase = std::get_if<state::ErasePod>(&change);
          return (put != nullptr && put->pod->uid == uid) ||
                 (erase != nullptr && erase->uid == uid);
        });
  }

  void AddPod(const State& state, const PodUid& uid,
              std::vector<Change>* changes) {
    if (IsThere(*changes, uid)) return;
    if (state.FindPod(uid) != nullptr && luck_.Below(4) == 0) {
      changes->push_back(state::ErasePod{uid});
      return;
    }
    PodRecord pod = PodWith(uid, {});
    for (const char* container : {"init", "main"}) {
      if (luck_.Below(3) == 0) continue;
      std::vector<std::string> devices = {fmt::format("d{}", luck_.Below(4))};
      if (luck_.Below(2) == 0) {
        devices.push_back(fmt::format("e{}", luck_.Below(4)));
      }
      pod.holds.push_back(Hold(container, devices,
                               luck_.Below(4) == 0
                                   ? ReservationPhase::kReserved
                                   : ReservationPhase::kCommitted));
      state::ContainerNeed need{container, false, {}};
      for (const ClaimUid& claim : PickClaims()) {
        need.wants.push_back({claim, luck_.Below(2) == 0 ? "" : "req", {}});
      }
      pod.needs.push_back(std::move(need));
    }
    // Which claims it has is decided with the claims.
    const PodRecord* old = state.FindPod(uid);
    pod.claims = old != nullptr ? old->claims : std::vector<ClaimUid>();
    changes->push_back(Put(std::move(pod)));
  }

  /// With all pods that it has then.
  void AddClaim(const State& state, const ClaimUid& uid,
                std::vector<Change>* changes) {
    const ClaimRecord* old = state.FindClaim(uid);
    ClaimRecord claim = state::MakeClaim(
        luck_.Below(3) == 0 ? DriverPhase::kPreparing : DriverPhase::kPrepared,
        {});
    claim.uid = uid;
    claim.name.name = uid.value;
    for (auto& device : claim.drivers.at(state::kDriver).devices) {
      device.device = fmt::format("gpu-{}", luck_.Below(3));
    }
    const bool gone = old != nullptr && luck_.Below(5) == 0;
    for (const auto& [pod_uid, pod] : state.pods) {
      const bool had = std::find(pod->claims.begin(), pod->claims.end(), uid) !=
                       pod->claims.end();
      const bool has = !gone && luck_.Below(2) == 0;
      if (has) claim.pods.insert(pod_uid);
      if (had == has) continue;
      PodRecord changed = *pod;
      if (has) {
        changed.claims.push_back(uid);
      } else {
        std::erase(changed.claims, uid);
      }
      if (IsThere(*changes, pod_uid)) {
        if (has) claim.pods.erase(pod_uid);
        if (had) claim.pods.insert(pod_uid);
        continue;
      }
      changes->push_back(Put(std::move(changed)));
    }
    if (gone && claim.pods.empty()) {
      changes->push_back(state::EraseClaim{uid});
    } else {
      changes->push_back(Put(std::move(claim)));
    }
  }

  std::vector<ClaimUid> PickClaims() {
    std::vector<ClaimUid> claims;
    for (int i = 0; i < 3; ++i) {
      if (luck_.Below(2) == 0) continue;
      claims.push_back(ClaimUid{fmt::format("claim-{}-{}", i, luck_.Below(3))});
    }
    return claims;
  }

  Luck& luck_;
};

TEST_F(DeviceChangesTest, WhatIsAllocatedIsReleasedOnceOrStillHeld) {
  std::size_t allocations = 0;
  const bool all = LiveEach({1, 12}, [&](Luck& luck) {
    state_ = {};
    stream_ = {};
    history_.clear();
    all_.clear();
    RandomLedger ledger(luck);
    HeldByStream late;
    ChangeToken known{0};
    for (int i = 0; i < 40 && !HasFailure(); ++i) {
      Decide(DecisionKind::kRepair, ledger.Next(state_));
      if (luck.Below(4) != 0) continue;
      // A reader that comes now and then goes on where it was.
      auto then = StateOf(state_, known, Read());
      ASSERT_THAT(then, IsOk());
      const auto replay = ReplayChanges(*std::move(then), known, state_.seq,
                                        1 + luck.Below(8), Read());
      ASSERT_THAT(replay, IsOk());
      late.Take(replay->found.changes);
      known = replay->found.next;
      ASSERT_EQ(late.complaint(), "");
    }
    allocations += stream_.allocations();
  });
  if (all) {
    EXPECT_GT(allocations, 200u);
  }
}

}  // namespace
}  // namespace devmgr::view
