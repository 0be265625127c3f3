// SPDX-License-Identifier: Apache-2.0
//
// One card under two names: what device plugins gave, and what drivers gave.
#include "claim/held_hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "claim/claim_fixture.h"
#include "claim/device_booking.h"

namespace devmgr::claim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGpu[] = "example.com/gpu";

device::Hardware Card(int number, bool part = false) {
  device::Hardware hardware;
  hardware.Add(
      device::PciIdentity("0000:3b:0" + std::to_string(number) + ".0"));
  hardware.part = part;
  return hardware;
}

class HeldHardwareTest : public ClaimTest {
 protected:
  HeldHardwareTest() {
    options_.hardware_of = [this](const state::DeviceKey& device) {
      return published_.contains(device) ? published_.at(device)
                                         : device::Hardware();
    };
  }

  static device::Reservation Plan(const std::string& pod,
                                  const std::string& id) {
    device::Reservation plan;
    plan.pod = PodUid{"u-" + pod};
    plan.container = "main";
    plan.resource = kGpu;
    plan.devices.push_back({id, {}});
    return plan;
  }
  absl::Status Reserve(const std::string& pod, const std::string& id,
                       const HardwareByNeed& hardware = {}) {
    const auto decision =
        ReserveDevices(state(), {PodUid{"u-" + pod}, NameOf(pod)}, 1'000,
                       {Plan(pod, id)}, Sharing::kOneOwner, hardware);
    if (decision.ok()) ledger_.Take(*decision);
    return decision.status();
  }
  absl::Status Commit(const std::string& pod,
                      const device::Hardware& hardware) {
    const auto decision =
        CommitDevices(state(), PodUid{"u-" + pod}, {{{"main", kGpu}, {}}},
                      WithoutClaims{{{"main", false, {}}}, ledger_.boot_id()},
                      {{{"main", kGpu}, hardware}});
    if (decision.ok()) ledger_.Take(*decision);
    return decision.status();
  }
  /// Pod and claim of this name, with the only device of the driver.
  Pod WithClaim(const std::string& name, const std::string& driver) {
    const ResourceClaim claim =
        ClaimBuilder("c" + name).From(driver, "dev-1").For("u-" + name, name);
    objects_.claims.insert_or_assign(claim.metadata.FullName(),
                                     std::make_shared<ResourceClaim>(claim));
    return PodBuilder(name).Claim("c", "c" + name).Container("main").Uses("c");
  }

  std::map<state::DeviceKey, device::Hardware> published_;
};

TEST_F(HeldHardwareTest, AClaimWaitsForThePodOfAPlugin) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  ASSERT_THAT(Reserve("A", "0"), IsOk());
  ASSERT_THAT(Commit("A", Card(0)), IsOk());
  const Pod pod = WithClaim("B", kDriver);
  const Verdict wait = Prepare(pod);
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.reason, kDeviceHeldElsewhere);
  EXPECT_THAT(wait.message,
              HasSubstr("is PCI address 0000:3b:00.0, which pod ns/A holds by "
                        "example.com/gpu"));
  ASSERT_EQ(wait.waiting_for.size(), 1u);
  EXPECT_EQ(wait.waiting_for.front().kind, WaitingFor::Kind::kPod);
  EXPECT_EQ(wait.waiting_for.front().name, "ns/A");
  ledger_.Take(BeginRelease(state(), PodUid{"u-A"}));
  ASSERT_THAT(ForgetPod(state(), PodUid{"u-A"}).status(), IsOk());
  ledger_.Take(*ForgetPod(state(), PodUid{"u-A"}));
  EXPECT_EQ(Prepare(pod).kind, Kind::kAdmit);
}

// The plugin tells by its answer only: nothing is held after that.
TEST_F(HeldHardwareTest, AnAnswerThatIsAnothersHardwareIsGivenBack) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  ASSERT_EQ(Prepare(WithClaim("B", kDriver)).kind, Kind::kAdmit);
  ASSERT_THAT(Reserve("A", "0"), IsOk());
  EXPECT_THAT(Commit("A", Card(0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("pod ns/B")));
  ledger_.Take(FreeReserved(state(), PodUid{"u-A"}, "held elsewhere"));
  EXPECT_THAT(state().FindPod(PodUid{"u-A"})->holds, IsEmpty());
  EXPECT_EQ(state().hardware_holdings.size(), 1u);
  // What is known by now is not reserved again.
  EXPECT_THAT(Reserve("A", "0", {{{"main", kGpu}, Card(0)}}),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("pod ns/B")));
  ASSERT_THAT(Reserve("A", "1"), IsOk());
  EXPECT_THAT(Commit("A", Card(1)), IsOk());
}

TEST_F(HeldHardwareTest, TwoDriversOfOneCard) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  published_[{kOtherDriver, "pool-1", "dev-1"}] = Card(0);
  ASSERT_EQ(Prepare(WithClaim("A", kDriver)).kind, Kind::kAdmit);
  AnswerAll();
  EXPECT_EQ(Prepare(WithClaim("B", kOtherDriver)).reason, kDeviceHeldElsewhere);
}

TEST_F(HeldHardwareTest, PartsOfOneCardAreHadByTwoPods) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0, /*part=*/true);
  published_[{kOtherDriver, "pool-1", "dev-1"}] = Card(0, /*part=*/true);
  EXPECT_EQ(Prepare(WithClaim("A", kDriver)).kind, Kind::kAdmit);
  EXPECT_EQ(Prepare(WithClaim("B", kOtherDriver)).kind, Kind::kAdmit);
}

TEST_F(HeldHardwareTest, OnePodMayHaveItTwice) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  ASSERT_THAT(Reserve("A", "0"), IsOk());
  ASSERT_THAT(Commit("A", Card(0)), IsOk());
  const HardwareTaker taker{kDriver, PodUid{"u-A"}, {}};
  EXPECT_FALSE(FindHardwareHolder(state(), Card(0), taker).has_value());
}

// Only its answer shows which card it is: the pod waits with what is prepared,
// and is Ready when the other pod is gone.
TEST_F(HeldHardwareTest, WhatADriverPreparedIsAnothersHardware) {
  ASSERT_THAT(Reserve("A", "0"), IsOk());
  ASSERT_THAT(Commit("A", Card(0)), IsOk());
  const Pod pod = WithClaim("B", kDriver);
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  state::PreparedDevice device = Prepared("dev-1", {"d.example.com/x=1"});
  device.hardware = Card(0);
  Answers(kDriver, {{ClaimUid{"u-cB"}, {device}}});
  EXPECT_EQ(PodOf(pod).phase, state::PodPhase::kPreparing);
  const Verdict wait = Book(pod, nullptr);
  EXPECT_EQ(wait.reason, kDeviceHeldElsewhere);
  EXPECT_THAT(wait.message, HasSubstr("pod ns/A"));
  ledger_.Take(BeginRelease(state(), PodUid{"u-A"}));
  ledger_.Take(*ForgetPod(state(), PodUid{"u-A"}));
  EXPECT_EQ(Book(pod, nullptr).kind, Kind::kAdmit);
  EXPECT_EQ(PodOf(pod).phase, state::PodPhase::kReady);
}

TEST_F(HeldHardwareTest, AForeignContainerHasACard) {
  auto holder = std::make_shared<state::ForeignHolderRecord>();
  holder->id.value = "0123456789abcdef";
  holder->endpoint = "/run/containerd.sock";
  holder->devices = {{kGpu, "0"}};
  holder->hardware = Card(0);
  state::Decision found;
  found.kind = state::DecisionKind::kHolderFound;
  found.changes.push_back(state::PutHolder{holder});
  ledger_.Take(found);
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  const Verdict wait = Prepare(WithClaim("B", kDriver));
  EXPECT_EQ(wait.reason, kDeviceHeldElsewhere);
  EXPECT_THAT(wait.message, HasSubstr("foreign container 0123456789abc"));
  ASSERT_EQ(wait.waiting_for.size(), 1u);
  EXPECT_EQ(wait.waiting_for.front().name, "/run/containerd.sock");
}

// What this node has allocated to a claim is kept for the pods it is reserved
// for before any driver is asked.
class LocalHardwareTest : public HeldHardwareTest {
 protected:
  static std::shared_ptr<state::LocalClaimRecord> LocalClaim(
      const std::string& name, const std::string& driver, int card,
      const std::vector<std::string>& pods) {
    ClaimBuilder claim = ClaimBuilder(name).From(driver, "dev-1");
    for (const std::string& pod : pods) claim.For("u-" + pod, pod);
    auto record = std::make_shared<state::LocalClaimRecord>();
    record->object = std::make_shared<const ResourceClaim>(claim);
    record->uid.value = record->object->metadata.uid;
    record->hardware = {{{driver, "pool-1", "dev-1"}, Card(card)}};
    return record;
  }
  void Put(const std::shared_ptr<state::LocalClaimRecord>& claim) {
    state::Decision decision;
    decision.kind = state::DecisionKind::kClaimsAllocated;
    decision.changes = {state::PutLocalClaim{claim}};
    ledger_.Take(decision);
  }
  absl::Status Check(const std::shared_ptr<state::LocalClaimRecord>& claim) {
    return CheckHardwareFree(state(), {state::PutLocalClaim{claim}});
  }
};

TEST_F(LocalHardwareTest, AClaimThatThisNodeAllocatedHasItsHardware) {
  Put(LocalClaim("L", kOtherDriver, 0, {"A", "B"}));
  const auto held =
      FindHardwareHolder(state(), Card(0), {kDriver, PodUid{"u-A"}, {}});
  ASSERT_TRUE(held.has_value()) << "of two pods one has not all of it";
  EXPECT_EQ(held->kind, state::HardwareHolding::Kind::kLocalClaim);
  EXPECT_EQ(held->uid, "u-L");
  EXPECT_EQ(held->holder, "pods ns/A, ns/B");
  EXPECT_EQ(HolderText(*held),
            "pods ns/A, ns/B, as PCI address 0000:3b:00.0 of e.example.com");
  std::vector<std::string> names;
  for (const WaitingFor& one : held->waiting_for) names.push_back(one.name);
  EXPECT_THAT(names, ::testing::ElementsAre("ns/A", "ns/B", "ns/L"));
  EXPECT_EQ(held->waiting_for.back().kind, WaitingFor::Kind::kClaim);
}

TEST_F(LocalHardwareTest, WhatATakerHasByItselfIsNotInItsWay) {
  Put(LocalClaim("L", kOtherDriver, 0, {"A"}));
  const auto is_held = [&](const HardwareTaker& taker) {
    return FindHardwareHolder(state(), Card(0), taker).has_value();
  };
  EXPECT_FALSE(is_held({kDriver, PodUid{"u-A"}, {}})) << "its only pod";
  EXPECT_TRUE(is_held({kDriver, PodUid{"u-B"}, {}}));
  EXPECT_TRUE(is_held({kDriver, PodUid{}, {}})) << "any pod";
  EXPECT_FALSE(is_held({kOtherDriver, PodUid{"u-B"}, {}})) << "its own driver";
  EXPECT_FALSE(is_held({kDriver, PodUid{"u-B"}, "u-L"})) << "the claim itself";
  EXPECT_TRUE(is_held({kDriver, PodUid{"u-B"}, "u-M"}));
  EXPECT_FALSE(FindHardwareHolder(state(), Card(1), {kDriver, {}, {}}));
  // Others that the caller passes over.
  EXPECT_FALSE(FindHardwareHolder(
      state(), Card(0), {kDriver, PodUid{"u-B"}, {}},
      [](const state::HardwareHolding& holding) {
        return holding.kind != state::HardwareHolding::Kind::kLocalClaim;
      }));
}

TEST_F(LocalHardwareTest, AClaimWithoutPodsIsNamedItself) {
  Put(LocalClaim("L", kOtherDriver, 0, {}));
  const auto held = FindHardwareHolder(state(), Card(0), {kDriver, {}, {}});
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->holder, "claim ns/L");
  const Verdict wait = WaitForHardware("device 'x'", *held);
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.reason, kDeviceHeldElsewhere);
  EXPECT_EQ(wait.message,
            "device 'x' is PCI address 0000:3b:00.0, which claim ns/L holds by "
            "e.example.com");
}

TEST_F(LocalHardwareTest, OfManyPodsTheFirstFewAreNamed) {
  Put(LocalClaim("L", kOtherDriver, 0, {"A", "B", "C", "D", "E", "F"}));
  const auto held = FindHardwareHolder(state(), Card(0), {kDriver, {}, {}});
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->holder, "pods ns/A, ns/B, ns/C, ns/D, ns/E, ...");
  EXPECT_EQ(held->waiting_for.size(), 7U) << "all of them, and the claim";
}

TEST_F(LocalHardwareTest, APreparedClaimIsOfItsOnlyPod) {
  published_[{kDriver, "pool-1", "dev-1"}] = Card(0);
  ASSERT_EQ(Prepare(WithClaim("A", kDriver)).kind, Kind::kAdmit);
  EXPECT_FALSE(FindHardwareHolder(state(), Card(0), {kGpu, PodUid{"u-A"}, {}}));
  const auto held =
      FindHardwareHolder(state(), Card(0), {kGpu, PodUid{"u-B"}, {}});
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->kind, state::HardwareHolding::Kind::kClaim);
  EXPECT_EQ(held->holder, "pod ns/A");
}

TEST_F(LocalHardwareTest, AContainerWithoutAPodIsNoPods) {
  auto holder = std::make_shared<state::ForeignHolderRecord>();
  holder->id.value = "f";
  holder->pod_uid.value = "u-A";
  holder->devices = {{kGpu, "0"}};
  holder->hardware = Card(0);
  state::Decision found;
  found.changes = {state::PutHolder{holder}};
  ledger_.Take(found);
  EXPECT_FALSE(
      FindHardwareHolder(state(), Card(0), {kDriver, PodUid{"u-A"}, {}}));
  const auto held =
      FindHardwareHolder(state(), Card(0), {kDriver, PodUid{"u-B"}, {}});
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->kind, state::HardwareHolding::Kind::kContainer);
  EXPECT_EQ(HolderText(*held).find(" of "), std::string::npos)
      << "no resource or driver gave it";
}

// Two decisions may be on their way at once: the later one loses.
TEST_F(LocalHardwareTest, AnAllocationOfHeldHardwareIsMadeAnew) {
  ASSERT_THAT(Reserve("A", "0"), IsOk());
  ASSERT_THAT(Commit("A", Card(0)), IsOk());
  EXPECT_THAT(
      Check(LocalClaim("L", kDriver, 0, {"B"})),
      StatusIs(absl::StatusCode::kAborted,
               HasSubstr("device d.example.com/pool-1/dev-1 is PCI address "
                         "0000:3b:00.0, which pod ns/A holds")));
  EXPECT_THAT(Check(LocalClaim("L", kDriver, 1, {"B"})), IsOk());
  EXPECT_THAT(Check(LocalClaim("L", kDriver, 0, {"A"})), IsOk())
      << "the pod has it already";
  EXPECT_THAT(Check(LocalClaim("L", kDriver, 0, {"A", "B"})),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(CheckHardwareFree(state(), {state::ErasePod{PodUid{"u-A"}}}),
              IsOk());
}

TEST_F(LocalHardwareTest, AClaimThatIsWrittenAgainKeepsItsHardware) {
  const auto claim = LocalClaim("L", kDriver, 0, {"B"});
  Put(claim);
  EXPECT_THAT(Check(claim), IsOk());
}

}  // namespace
}  // namespace devmgr::claim
