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

/// A ledger with one runtime, `/r`.
class ForeignHoldersTest : public testing::Test {
 protected:
  state::Decision Judge(std::vector<state::ForeignHolderRecord> holders,
                        bool all, std::int64_t now_ms = 7) {
    return JudgeHolders(ledger_.state(), {"/r", std::move(holders), all},
                        now_ms);
  }
  const state::ForeignHolderRecord* Find(const std::string& id) const {
    return ledger_.state().FindHolder({id});
  }
  /// The pod has these devices for good, and this CDI device of a claim.
  void GiveToPod(
      const std::string& name, const std::set<std::string>& devices,
      const std::string& cdi_name = "",
      device::ReservationPhase phase = device::ReservationPhase::kCommitted) {
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid.value = name;
    pod->name = {"default", name};
    const bool ready = phase == device::ReservationPhase::kCommitted;
    pod->phase = ready ? state::PodPhase::kReady : state::PodPhase::kAllocating;
    if (!devices.empty()) {
      state::DeviceHold hold;
      hold.container = "main";
      hold.resource = kTpuResource;
      hold.phase = phase;
      for (const std::string& id : devices) hold.devices.push_back({id, {}});
      pod->holds = {hold};
    }
    if (ready) {
      auto answer = std::make_shared<PodDevices>();
      answer->name = pod->name;
      answer->uid = pod->uid;
      answer->containers.emplace_back().name = "main";
      answer->containers[0].cdi_devices = {{cdi_name, {}}};
      pod->answer = answer;
      pod->boot_id = ledger_.boot_id();
    }
    state::Decision decision;
    decision.changes = {state::PutPod{pod}};
    ledger_.Take(decision);
  }

  TestLedger ledger_;
};

TEST_F(ForeignHoldersTest, AHolderIsKeptWithWhenItWasFoundFirst) {
  const auto found = Judge({Holder("c1", "stray", {"0"})}, true, 7);
  EXPECT_EQ(found.kind, state::DecisionKind::kHolderFound);
  EXPECT_THAT(found.pods,
              ::testing::ElementsAre(ObjectName{"default", "stray"}));
  EXPECT_THAT(found.message, HasSubstr("foreign container c1"));
  ASSERT_TRUE(ledger_.Take(found));
  EXPECT_EQ(Find("c1")->endpoint, "/r");
  // It holds more by now.
  ASSERT_TRUE(
      ledger_.Take(Judge({Holder("c1", "stray", {"0", "1"})}, true, 9)));
  EXPECT_EQ(Find("c1")->since_ms, 7);
  EXPECT_EQ(Find("c1")->devices.size(), 2U);
}

TEST_F(ForeignHoldersTest, OnlyACompleteReportSaysThatAHolderIsGone) {
  ledger_.Take(
      Judge({Holder("c1", "a", {"0"}), Holder("c2", "b", {"1"})}, true));
  EXPECT_FALSE(ledger_.Take(Judge({Holder("c1", "a", {"0"})}, false)));
  const auto gone = Judge({Holder("c1", "a", {"0"})}, true);
  EXPECT_EQ(gone.kind, state::DecisionKind::kHolderGone);
  EXPECT_THAT(gone.message, HasSubstr("c2"));
  ASSERT_TRUE(ledger_.Take(gone));
  EXPECT_EQ(Find("c2"), nullptr);
  EXPECT_NE(Find("c1"), nullptr);
  // One that is listed without devices holds nothing.
  ASSERT_TRUE(ledger_.Take(Judge({Holder("c1", "a", {})}, false)));
  EXPECT_EQ(Find("c1"), nullptr);
}

TEST_F(ForeignHoldersTest, AnotherRuntimeDoesNotTouchAHolder) {
  ledger_.Take(Judge({Holder("c1", "a", {"0"})}, true));
  EXPECT_FALSE(ledger_.Take(JudgeHolders(
      ledger_.state(), {"/other", {Holder("c1", "a", {"0", "1"})}, true}, 9)));
  EXPECT_EQ(Find("c1")->devices.size(), 1U);
}

TEST_F(ForeignHoldersTest, AContainerIsNamedTwiceAndCountsOnce) {
  ledger_.Take(
      Judge({Holder("c1", "a", {"0"}), Holder("c1", "a", {"1"})}, true));
  EXPECT_TRUE(Find("c1")->devices.contains({kTpuResource, {"0"}}));
  EXPECT_FALSE(Find("c1")->devices.contains({kTpuResource, {"1"}}));
}

TEST_F(ForeignHoldersTest, WhatItsPodWasGivenIsNotForeign) {
  GiveToPod("a", {"0"}, "v.example.com/c=1");
  auto holder = Holder("c1", "a", {"0", "1"});
  holder.cdi_devices = {"v.example.com/c=1", "v.example.com/c=2"};
  const auto beyond = HeldBeyondPods(ledger_.state(), holder);
  EXPECT_THAT(beyond.devices,
              ::testing::ElementsAre(
                  std::pair<ResourceName, DeviceId>(kTpuResource, "1")));
  EXPECT_THAT(beyond.cdi_devices, ::testing::ElementsAre("v.example.com/c=2"));
}

// It may be given back: until then both are on record.
TEST_F(ForeignHoldersTest, WhatIsOnlyReservedForItsPodStaysForeign) {
  GiveToPod("a", {"0"}, "", device::ReservationPhase::kReserved);
  EXPECT_EQ(
      HeldBeyondPods(ledger_.state(), Holder("c1", "a", {"0"})).devices.size(),
      1U);
  // What another pod has reserved is that pod's.
  EXPECT_THAT(HeldBeyondPods(ledger_.state(), Holder("c1", "b", {"0"})).devices,
              IsEmpty());
}

TEST_F(ForeignHoldersTest, AHolderEndsWhenItsPodHasJustTheseDevices) {
  ledger_.Take(
      Judge({Holder("c1", "a", {"0"}), Holder("c2", "a", {"1"})}, true));
  auto both = Holder("c3", "a", {"2"});
  both.cdi_devices = {"v.example.com/c=1"};
  ledger_.Take(Judge({both}, false));
  GiveToPod("a", {"0", "2"});
  ASSERT_TRUE(ledger_.Take(SettleHolders(ledger_.state(), PodUid{"a"})));
  EXPECT_EQ(Find("c1"), nullptr);
  EXPECT_NE(Find("c2"), nullptr) << "its device is not the pod's";
  ASSERT_NE(Find("c3"), nullptr) << "it holds a CDI device, too";
  EXPECT_THAT(Find("c3")->devices, IsEmpty());
  EXPECT_FALSE(ledger_.Take(SettleHolders(ledger_.state(), PodUid{"a"})));
}

TEST_F(ForeignHoldersTest, NoContainerOutlivesItsBoot) {
  auto old = Holder("c1", "a", {"0"});
  old.boot_id = "boot-0";
  auto now = Holder("c2", "b", {"1"});
  now.boot_id = ledger_.boot_id();
  ledger_.Take(Judge({old, now}, true));
  ASSERT_TRUE(
      ledger_.Take(EndEarlierBoots(ledger_.state(), ledger_.boot_id())));
  EXPECT_EQ(Find("c1"), nullptr);
  EXPECT_NE(Find("c2"), nullptr);
  EXPECT_FALSE(
      ledger_.Take(EndEarlierBoots(ledger_.state(), ledger_.boot_id())));
}

TEST_F(ForeignHoldersTest, AContainerIsFoundByTheBeginningOfItsId) {
  ledger_.Take(Judge({Holder("abc", "a", {"0"}), Holder("abd", "b", {"1"}),
                      Holder("b", "c", {"2"})},
                     true));
  const auto find = [&](const std::string& id) {
    return FindHolder(ledger_.state(), id);
  };
  EXPECT_EQ((*find("abc"))->id.value, "abc");
  EXPECT_EQ((*find("b"))->id.value, "b") << "all of it";
  EXPECT_EQ((*find("abd"))->pod.name, "b");
  EXPECT_THAT(find("ab").status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("abc, abd")));
  EXPECT_THAT(find("").status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(find("x").status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(find("abcd").status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ForeignHoldersTest, AnOperatorFreesWhatAContainerHolds) {
  ledger_.Take(Judge({Holder("abc", "a", {"0"})}, true));
  const auto free = [&](const std::string& id, const std::string& reason) {
    return FreeHolder(ledger_.state(), id, reason);
  };
  EXPECT_THAT(free("ab", "").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(free("x", "it hangs").status(),
              StatusIs(absl::StatusCode::kNotFound));
  const auto freed = free("ab", "it hangs");
  ASSERT_THAT(freed, IsOk());
  EXPECT_EQ(freed->kind, state::DecisionKind::kHolderFreed);
  EXPECT_THAT(freed->message, HasSubstr("device '0' of 'example.com/tpu'"));
  EXPECT_THAT(freed->message, HasSubstr("it hangs"));
  ASSERT_TRUE(ledger_.Take(*freed));
  EXPECT_FALSE(Find("abc")->Holds());
  EXPECT_THAT(free("abc", "again").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("free already: it hangs")));
  // The next report does not take it for a new one.
  EXPECT_FALSE(ledger_.Take(Judge({Holder("abc", "a", {"0", "1"})}, true)));
  ASSERT_TRUE(ledger_.Take(Judge({}, true)));
  EXPECT_EQ(Find("abc"), nullptr);
}

TEST(ForeignDecisionsTest, OfManyDevicesTheFirstFewAreNamed) {
  auto holder = Holder("c", "a", {"0", "1", "2", "3", "4", "5", "6"});
  holder.cdi_devices = {"v.example.com/c=1"};
  const std::string eight = HeldText(holder);
  EXPECT_THAT(eight, HasSubstr("device '6' of 'example.com/tpu'"));
  EXPECT_THAT(eight, HasSubstr("CDI device 'v.example.com/c=1'"));
  EXPECT_THAT(eight, ::testing::Not(HasSubstr("more")));
  holder.cdi_devices.insert("v.example.com/c=2");
  EXPECT_THAT(HeldText(holder), HasSubstr(", and 1 more"));
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
