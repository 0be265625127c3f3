// SPDX-License-Identifier: Apache-2.0
//
// Random lives of pods over one set of cards, which a device plugin and two
// drivers offer under names of their own: no card is ever in two pods' hands.
// Some cards are known by what is listed and published, others only by what is
// answered. 100,000 lives with DEVMGR_TEST_SCALE=10.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "claim/claim_fixture.h"
#include "claim/device_booking.h"
#include "claim/held_hardware.h"
#include "support/random_lives.h"

namespace devmgr::claim {
namespace {

using ::testing::IsEmpty;

constexpr char kResource[] = "example.com/gpu";
constexpr int kCards = 3;
constexpr int kCardPods = 5;

device::Hardware Listed(int card) {
  device::Hardware hardware;
  // The last one is known by its device node alone.
  if (card + 1 < kCards) {
    hardware.Add(device::PciIdentity(fmt::format("0000:3{}:00.0", card)));
  }
  return hardware;
}

device::Hardware Answered(int card) {
  device::Hardware hardware = Listed(card);
  hardware.Add(device::PhysicalIdentity{fmt::format("node:c195:{}", card)});
  return hardware;
}

class CardLife {
 public:
  explicit CardLife(Luck& luck) : luck_(luck) {
    options_.hardware_of = [](const state::DeviceKey& device) {
      return Listed(CardOf(std::get<2>(device)));
    };
  }

  void Live() {
    TakeSteps(14, luck_,
              {{"reserve", 4, [this] { return Reserve(); }},
               {"commit", 4, [this] { return Commit(); }},
               {"book", 5, [this] { return Book(); }},
               {"answer", 5, [this] { return Answer(); }},
               {"look again", 2, [this] { return LookAgain(); }},
               {"end", 3, [this] { return End(); }},
               {"unprepare", 3, [this] { return Unprepare(); }}},
              [this] { Check(); });
    EXPECT_THAT(state::CheckInvariants(state_, kBoot), IsEmpty());
  }

  /// Pods that had a card in this life.
  int served() const { return static_cast<int>(served_.size()); }
  int refused() const { return refused_; }

 private:
  static constexpr char kBoot[] = "boot-1";

  static int CardOf(const std::string& device) { return device.back() - '0'; }

  void Take(const state::Decision& decision) {
    if (decision.changes.empty()) return;
    state::Batch batch{state_.seq + 1, 1'000, decision, {}};
    ASSERT_THAT(state::Apply(state_, batch), IsOk());
  }
  std::string Refused(const std::string& text) {
    ++refused_;
    return text;
  }
  static PodIdentity IdentityOf(int pod) {
    return {PodUid{fmt::format("u-{}", pod)}, {"ns", std::to_string(pod)}};
  }
  int AnyPod() { return luck_.Below(kCardPods); }

  std::string Reserve() {
    const PodIdentity pod = IdentityOf(AnyPod());
    if (state_.FindPod(pod.uid) != nullptr) return "known";
    const int card = luck_.Below(kCards);
    device::Reservation plan;
    plan.pod = pod.uid;
    plan.container = "main";
    plan.resource = kResource;
    plan.devices.push_back({fmt::format("gpu-{}", card), {}});
    HardwareByNeed hardware;
    if (luck_.Chance(70)) hardware[{"main", kResource}] = Listed(card);
    const auto decision = ReserveDevices(state_, pod, 1'000, {plan},
                                         Sharing::kOneOwner, hardware);
    if (!decision.ok())
      return Refused(std::string(decision.status().message()));
    Take(*decision);
    return fmt::format("pod {} card {}", pod.name.name, card);
  }

  std::string Commit() {
    for (const auto& [uid, pod] : state_.pods) {
      if (!HasReserved(*pod)) continue;
      const int card = CardOf(pod->holds.front().devices.front().id);
      const auto decision =
          CommitDevices(state_, uid, {{{"main", kResource}, {}}},
                        WithoutClaims{{{"main", false, {}}}, kBoot},
                        {{{"main", kResource}, Answered(card)}});
      if (decision.ok()) {
        Take(*decision);
        return "pod " + pod->name.name;
      }
      const std::string name = pod->name.name;
      Take(FreeReserved(state_, uid, "held elsewhere"));
      return Refused(fmt::format("pod {} gives back", name));
    }
    return "none";
  }

  /// With one of two drivers, and one or two cards.
  std::string Book() {
    const int number = AnyPod();
    const PodIdentity identity = IdentityOf(number);
    const state::PodRecord* known = state_.FindPod(identity.uid);
    if (known != nullptr && known->phase != state::PodPhase::kWaiting) {
      return "known";
    }
    const std::string driver = luck_.Chance(50) ? kDriver : kOtherDriver;
    ClaimBuilder builder(fmt::format("c{}", number));
    const int card = luck_.Below(kCards);
    builder.From(driver, fmt::format("dev-{}", card))
        .For(identity.uid.value, identity.name.name);
    // The control plane gave this driver's device to no other claim.
    for (const auto& [uid, claim] : state_.claims) {
      for (const state::DeviceKey& own : state::OwnDevices(*claim)) {
        if (own ==
            state::DeviceKey(driver, "pool-1", fmt::format("dev-{}", card))) {
          return "allocated";
        }
      }
    }
    const ResourceClaim claim = builder;
    const Pod pod = PodBuilder(identity.name.name)
                        .Claim("c", claim.metadata.name)
                        .Container("main")
                        .Uses("c");
    const PlanResult planned =
        PlanPod(pod, SnapshotOf({claim}, {pod}), options_);
    EXPECT_EQ(planned.verdict.kind, Kind::kAdmit) << planned.verdict.message;
    auto booked = BookPod(state_, {identity.uid, pod.metadata.FullName()},
                          1'000, &planned.plan, kBoot);
    EXPECT_THAT(booked, IsOk());
    if (booked->verdict.kind != Kind::kAdmit) {
      return Refused(booked->verdict.message);
    }
    Take(booked->decision);
    return fmt::format("pod {} card {} of {}", number, card, driver);
  }

  std::string Answer() {
    for (const auto& [uid, claim] : state_.claims) {
      for (const auto& [driver, part] : claim->drivers) {
        if (part.phase != state::DriverPhase::kPreparing) continue;
        const std::string name = part.allocated.front().device;
        state::PreparedDevice device = Prepared(name, {"v.com/c=" + name});
        device.hardware = Answered(CardOf(name));
        const std::string text = claim->name.name;
        Take(RecordPrepared(state_, driver, {{uid, {device}}}, kBoot));
        return text;
      }
    }
    return "none";
  }

  std::string LookAgain() {
    for (const auto& [uid, pod] : state_.pods) {
      if (pod->phase != state::PodPhase::kPreparing) continue;
      const auto booked =
          BookPod(state_, {uid, pod->name}, 1'000, nullptr, kBoot);
      EXPECT_THAT(booked, IsOk());
      if (booked->verdict.kind != Kind::kAdmit) {
        return Refused(booked->verdict.message);
      }
      Take(booked->decision);
      return "";
    }
    return "none";
  }

  std::string End() {
    const PodUid uid = IdentityOf(AnyPod()).uid;
    const state::PodRecord* pod = state_.FindPod(uid);
    if (pod == nullptr || HasReserved(*pod)) return "none";
    ReleaseTerms terms;
    terms.ends = true;
    Take(BeginRelease(state_, uid, terms));
    if (state_.FindPod(uid) == nullptr) return "at once";
    if (state_.FindPod(uid)->claims.empty()) {
      const auto forgotten = ForgetPod(state_, uid);
      if (forgotten.ok()) Take(*forgotten);
    }
    return uid.value;
  }

  std::string Unprepare() {
    for (const auto& [uid, claim] : state_.claims) {
      for (const auto& [driver, part] : claim->drivers) {
        if (part.phase != state::DriverPhase::kUnpreparing) continue;
        const std::string name = claim->name.name;
        std::set<PodUid> ending;
        for (const PodUid& pod : claim->pods) ending.insert(pod);
        for (const auto& [pod_uid, pod] : state_.pods) {
          if (pod->phase == state::PodPhase::kReleasing) ending.insert(pod_uid);
        }
        Take(RecordUnprepared(state_, std::string(driver), {uid}, {}, ending));
        return name;
      }
    }
    return "none";
  }

  /// By the cards themselves: what a container could be using now.
  void Check() {
    std::map<int, std::set<std::string>> users;
    for (const auto& [uid, pod] : state_.pods) {
      for (const state::DeviceHold& hold : pod->holds) {
        if (hold.phase != device::ReservationPhase::kCommitted) continue;
        users[CardOf(hold.devices.front().id)].insert(uid.value);
      }
    }
    for (const auto& [uid, claim] : state_.claims) {
      for (const PodUid& pod : claim->pods) {
        if (state_.FindPod(pod)->phase != state::PodPhase::kReady) continue;
        for (const auto& [driver, part] : claim->drivers) {
          users[CardOf(part.allocated.front().device)].insert(pod.value);
        }
      }
    }
    for (const auto& [card, pods] : users) {
      EXPECT_LE(pods.size(), 1u) << "card " << card << ": "
                                 << fmt::format("{}", fmt::join(pods, ", "));
      served_.insert(pods.begin(), pods.end());
    }
  }

  Luck& luck_;
  state::State state_;
  PlanOptions options_;
  std::set<std::string> served_;
  int refused_ = 0;
};

TEST(OneHolderTest, NoCardIsEverInTwoPodsHands) {
  std::int64_t served = 0;
  std::int64_t refused = 0;
  const bool all = LiveEach({20'261'127, 10'000}, [&](Luck& luck) {
    CardLife life(luck);
    life.Live();
    served += life.served();
    refused += life.refused();
  });
  if (!all) return;
  // The lives come to something.
  EXPECT_GT(served, 10'000);
  EXPECT_GT(refused, 5'000);
}

}  // namespace
}  // namespace devmgr::claim
