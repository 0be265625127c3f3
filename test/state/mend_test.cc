// SPDX-License-Identifier: Apache-2.0
#include "state/mend.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "state/record_builders.h"
#include "support/random_lives.h"

namespace devmgr::state {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const NameOfPod kNobody = [](const PodUid&) { return std::nullopt; };

State StateOf(const std::vector<Batch>& batches) {
  State state;
  for (const Batch& batch : batches) EXPECT_TRUE(Apply(state, batch).ok());
  return state;
}

State ReadyPod() { return StateOf(PreparedPodBatches()); }

std::size_t MendAndCheck(State& state, const NameOfPod& names = kNobody) {
  const std::size_t mended = Mend(state, names);
  EXPECT_THAT(CheckInvariants(state), IsEmpty());
  State again = state;
  EXPECT_EQ(Mend(again, names), 0u);
  return mended;
}

TEST(MendTest, LeavesWhatIsGoodAlone) {
  for (const std::vector<Batch>& batches :
       {PreparedPodBatches(), std::vector<Batch>()}) {
    State state = StateOf(batches);
    EXPECT_EQ(MendAndCheck(state), 0u);
    EXPECT_TRUE(state == StateOf(batches));
  }
}

State PodsWithDevices(PodPhase first, device::ReservationPhase phase,
                      const std::vector<std::string>& second) {
  State state;
  PodRecord a = MakePod(kPodA, "a", first);
  a.first_seen_seq = 1;
  a.claims.clear();
  a.holds = {MakeHold({"tpu-0", "tpu-1"}, phase)};
  PodRecord b = MakePod(kPodB, "b", PodPhase::kAdmitted);
  b.first_seen_seq = 2;
  b.claims.clear();
  b.holds = {MakeHold(second)};
  state.Put(std::make_shared<PodRecord>(a));
  state.Put(std::make_shared<PodRecord>(b));
  return state;
}

TEST(MendTest, LeavesDevicesWithTheirPods) {
  State state = PodsWithDevices(
      PodPhase::kAdmitted, device::ReservationPhase::kCommitted, {"tpu-2"});
  EXPECT_EQ(MendAndCheck(state), 0u);
}

TEST(MendTest, ADeviceStaysWithThePodThatWasSeenFirst) {
  State state = PodsWithDevices(
      PodPhase::kAdmitted, device::ReservationPhase::kCommitted, {"tpu-1"});
  EXPECT_EQ(MendAndCheck(state), 1u);
  EXPECT_EQ(state.FindPod(kPodA)->holds.size(), 1u);
  EXPECT_EQ(state.FindPod(kPodB)->phase, PodPhase::kWaiting);
  EXPECT_THAT(state.FindPod(kPodB)->holds, IsEmpty());
}

TEST(MendTest, AReservationIsForgotten) {
  State state = PodsWithDevices(PodPhase::kAllocating,
                                device::ReservationPhase::kReserved, {"tpu-1"});
  EXPECT_EQ(MendAndCheck(state), 1u);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kWaiting);
  EXPECT_EQ(state.FindPod(kPodB)->holds.size(), 1u);
}

TEST(MendTest, WhatAnInitContainerWasToGetAnewDoesNotCostThePodItsDevices) {
  State state = ReadyPod();
  PodRecord pod = *state.FindPod(kPodA);
  DeviceHold app;
  app.container = "main";
  app.resource = "example.com/tpu";
  app.phase = device::ReservationPhase::kCommitted;
  app.devices = {{"0", {}}};
  DeviceHold init = app;
  init.container = "init";
  init.kind = device::ContainerKind::kInit;
  init.phase = device::ReservationPhase::kReserved;
  pod.holds = {init, app};
  state.Put(std::make_shared<PodRecord>(pod));
  MendAndCheck(state);
  const PodRecord* mended = state.FindPod(kPodA);
  ASSERT_EQ(mended->holds.size(), 2u);
  EXPECT_EQ(mended->holds[0].phase, device::ReservationPhase::kReleased);
  EXPECT_EQ(mended->holds[1], app);
}

TEST(MendTest, ALivePodThatLosesItsDevicesIsReleased) {
  State state = ReadyPod();
  PodRecord a = *state.FindPod(kPodA);
  a.first_seen_seq = 9;
  a.holds = {MakeHold({"tpu-0"})};
  state.Put(std::make_shared<PodRecord>(a));
  PodRecord b = MakePod(kPodB, "b", PodPhase::kAdmitted);
  b.first_seen_seq = 2;
  b.claims.clear();
  b.holds = {MakeHold({"tpu-0"})};
  state.Put(std::make_shared<PodRecord>(b));
  MendAndCheck(state);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kReleasing);
  EXPECT_EQ(state.FindPod(kPodB)->phase, PodPhase::kAdmitted);
}

TEST(MendTest, APodWhoseOnlyClaimIsLostIsAdmittedAnew) {
  State state = ReadyPod();
  state.Erase(kGpu);
  MendAndCheck(state);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kWaiting);
  EXPECT_EQ(state.FindPod(kPodA)->answer, nullptr);
}

TEST(MendTest, APodThatLostOneOfItsClaimsKeepsTheOthers) {
  State state = ReadyPod();
  PodRecord pod = *state.FindPod(kPodA);
  pod.claims.push_back({"lost"});
  state.Put(std::make_shared<PodRecord>(pod));
  MendAndCheck(state);
  const PodRecord* mended = state.FindPod(kPodA);
  EXPECT_EQ(mended->phase, PodPhase::kPreparing);
  EXPECT_THAT(mended->claims, ElementsAre(kGpu));
  // Needs of before would make it Ready without what is lost.
  EXPECT_THAT(mended->needs, IsEmpty());
  EXPECT_EQ(state.FindClaim(kGpu)->drivers.at(kDriver).phase,
            DriverPhase::kPrepared);
}

TEST(MendTest, APodThatOnlyItsClaimKnowsOfKeepsIt) {
  State state = ReadyPod();
  state.Erase(kPodA);
  MendAndCheck(state, [](const PodUid&) { return ObjectName{"default", "a"}; });
  const PodRecord* pod = state.FindPod(kPodA);
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->name.ToString(), "default/a");
  EXPECT_EQ(pod->phase, PodPhase::kPreparing);
  EXPECT_THAT(pod->claims, ElementsAre(kGpu));
  EXPECT_EQ(state.FindClaim(kGpu)->drivers.at(kDriver).phase,
            DriverPhase::kPrepared);
}

TEST(MendTest, AClaimThatNobodyHoldsIsUnprepared) {
  State state = ReadyPod();
  state.Erase(kPodA);
  state.Put(
      std::make_shared<ClaimRecord>(MakeClaim(DriverPhase::kPrepared, {})));
  MendAndCheck(state);
  const ClaimRecord* claim = state.FindClaim(kGpu);
  ASSERT_NE(claim, nullptr);
  EXPECT_EQ(claim->drivers.at(kDriver).phase, DriverPhase::kUnpreparing);
  ASSERT_EQ(claim->pods.size(), 1u);
  EXPECT_EQ(state.FindPod(*claim->pods.begin())->phase, PodPhase::kReleasing);
}

TEST(MendTest, APodWhoseClaimIsBeingUnpreparedIsReleased) {
  State state = ReadyPod();
  state.Put(std::make_shared<ClaimRecord>(
      MakeClaim(DriverPhase::kUnpreparing, {kPodA})));
  MendAndCheck(state);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kReleasing);
  EXPECT_EQ(state.FindPod(kPodA)->answer, nullptr);
}

TEST(MendTest, OfTwoClaimsOfANameTheNewerPodKeepsIts) {
  State state = ReadyPod();
  ClaimRecord newer = MakeClaim(DriverPhase::kPrepared, {kPodB});
  newer.uid = {"claim-gpu-2"};
  state.Put(std::make_shared<ClaimRecord>(newer));
  PodRecord pod = MakePod(kPodB, "b", PodPhase::kReady);
  pod.first_seen_seq = 9;
  pod.claims = {newer.uid};
  pod.needs[1].wants[0].claim = newer.uid;
  state.Put(std::make_shared<PodRecord>(pod));
  MendAndCheck(state);
  EXPECT_EQ(state.FindPod(kPodA)->phase, PodPhase::kReleasing);
  EXPECT_EQ(state.FindPod(kPodB)->phase, PodPhase::kReady);
}

// ---- anything

class RandomState {
 public:
  explicit RandomState(Luck& luck) : luck_(luck) {}

  State Make() {
    State state;
    for (int i = luck_.Below(5); i > 0; --i) state.Put(Pod());
    for (int i = luck_.Below(5); i > 0; --i) state.Put(Claim());
    for (int i = luck_.Below(4); i > 0; --i) {
      state.Put(std::make_shared<IdentityRecord>(
          MakeIdentity(Text("n", 3), Text("u", 3))));
    }
    return state;
  }

 private:
  std::string Text(const char* prefix, int bound) {
    return fmt::format("{}{}", prefix, luck_.Below(bound));
  }

  std::shared_ptr<PodRecord> Pod() {
    auto pod = std::make_shared<PodRecord>(
        MakePod({Text("pod-", 5)}, Text("name-", 3),
                static_cast<PodPhase>(1 + luck_.Below(5))));
    pod->first_seen_seq = luck_.Below(std::uint64_t{9});
    pod->claims.clear();
    for (int i = luck_.Below(4); i > 0; --i) {
      pod->claims.push_back({Text("claim-", 5)});
    }
    if (luck_.Below(2) == 0) pod->needs.clear();
    for (ContainerNeed& need : pod->needs) {
      for (Want& want : need.wants) want.claim = {Text("claim-", 5)};
    }
    if (luck_.Below(4) == 0) pod->answer = nullptr;
    if (luck_.Below(4) == 0) pod->boot_id = Text("boot-", 3);
    if (luck_.Below(6) == 0) pod->boot_id.clear();
    return pod;
  }

  std::shared_ptr<ClaimRecord> Claim() {
    auto claim = std::make_shared<ClaimRecord>();
    claim->uid = {Text("claim-", 5)};
    claim->name = {"default", Text("c", 3)};
    for (int i = luck_.Below(4); i > 0; --i)
      claim->pods.insert({Text("pod-", 5)});
    for (int i = luck_.Below(3); i > 0; --i) {
      DriverRecord& driver = claim->drivers[Text("d", 3)];
      driver.phase = static_cast<DriverPhase>(1 + luck_.Below(3));
      if (driver.phase == DriverPhase::kPrepared) {
        driver.boot_id = luck_.Below(6) == 0 ? "" : Text("boot-", 3);
      }
      if (luck_.Below(3) == 0) driver.debt.emplace();
      driver.spec_recovery = static_cast<SpecRecovery>(luck_.Below(4));
    }
    return claim;
  }

  Luck& luck_;
};

TEST(MendTest, MakesAnythingHoldTheInvariants) {
  LiveEach({std::random_device{}(), 3'000}, [](Luck& luck) {
    State state = RandomState(luck).Make();
    const State before = state;
    MendAndCheck(state);
    // What a driver may have prepared is not forgotten.
    for (const auto& [uid, claim] : before.claims) {
      EXPECT_TRUE(claim->drivers.empty() || state.FindClaim(uid) != nullptr);
    }
  });
}

TEST(MendTest, AForeignHolderKeepsWhatNoPodHas) {
  State state = PodsWithDevices(
      PodPhase::kAdmitted, device::ReservationPhase::kCommitted, {"tpu-2"});
  for (const ForeignHolderRecord& holder :
       {MakeHolder("keeps", {"tpu-2", "tpu-3"}), MakeHolder("ends", {"tpu-2"}),
        MakeHolder("empty", {}), MakeHolder("good", {"tpu-4"})}) {
    state.Put(std::make_shared<ForeignHolderRecord>(holder));
  }
  ForeignHolderRecord freed = MakeHolder("freed", {"tpu-2"});
  freed.freed = "it hangs";
  state.Put(std::make_shared<ForeignHolderRecord>(freed));
  EXPECT_EQ(MendAndCheck(state), 3u);
  EXPECT_EQ(*state.FindHolder({"keeps"}), MakeHolder("keeps", {"tpu-3"}));
  EXPECT_EQ(state.FindHolder({"ends"}), nullptr);
  EXPECT_EQ(state.FindHolder({"empty"}), nullptr);
  EXPECT_EQ(*state.FindHolder({"good"}), MakeHolder("good", {"tpu-4"}));
  EXPECT_EQ(*state.FindHolder({"freed"}), freed);
}

}  // namespace
}  // namespace devmgr::state
