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

}  // namespace
}  // namespace devmgr::claim
