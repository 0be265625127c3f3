// SPDX-License-Identifier: Apache-2.0
#include "claim/device_booking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "claim/init_devices.h"
#include "claim/release.h"
#include "claim/resource_names.h"
#include "state/record_builders.h"
#include "support/state_table.h"
#include "support/status_matchers.h"

namespace devmgr::claim {
namespace {

using device::Reservation;
using device::ReservationPhase;
using state::Decision;
using state::PodPhase;
using state::PodRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kTpu[] = "example.com/tpu";

class DeviceBookingTest : public testing::Test {
 protected:
  static PodIdentity Identity(const std::string& name) {
    return {PodUid{"u-" + name}, {"default", name}};
  }

  static Reservation Plan(const std::string& pod, const std::string& resource,
                          const std::vector<std::string>& devices,
                          const std::string& container = "main") {
    Reservation planned;
    planned.pod = Identity(pod).uid;
    planned.container = container;
    planned.resource = resource;
    for (const std::string& id : devices) planned.devices.push_back({id, {0}});
    return planned;
  }

  /// Applies a decision as the ledger does; all invariants must hold after it.
  void Take(const Decision& decision) {
    if (decision.changes.empty()) return;
    state::Batch batch;
    batch.seq = state_.seq + 1;
    batch.decision = decision;
    ASSERT_THAT(state::ApplyNew(state_, batch), IsOk());
    EXPECT_THAT(state::CheckInvariants(state_), IsEmpty());
    kinds_.push_back(decision.kind);
  }

  absl::Status Reserve(const std::string& pod,
                       const std::vector<Reservation>& plan) {
    const auto decision =
        ReserveDevices(state_, Identity(pod), /*now_ms=*/1'000, plan);
    if (decision.ok()) Take(*decision);
    return decision.status();
  }
  absl::Status Commit(
      const std::string& pod, const AllocateAnswers& answers,
      const std::optional<WithoutClaims>& without_claims = std::nullopt) {
    const auto decision =
        CommitDevices(state_, Identity(pod).uid, answers, without_claims);
    if (decision.ok()) Take(*decision);
    return decision.status();
  }
  void Free(const std::string& pod) {
    Take(FreeReserved(state_, Identity(pod).uid, "the plugin failed"));
  }

  const PodRecord* Pod(const std::string& name) const {
    return state_.FindPod(Identity(name).uid);
  }

  static AllocateAnswers Answers(const std::string& resource) {
    device::ContainerEdits edits;
    edits.env = {{"FROM", resource}};
    return {{{"main", resource}, {edits, false}}};
  }

  state::State state_;
  std::vector<state::DecisionKind> kinds_;
};

TEST_F(DeviceBookingTest, APodIsAdmittedOnceItsPluginsHaveAnswered) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0", "1"})}), IsOk());
  EXPECT_EQ(Pod("p")->phase, PodPhase::kAllocating);
  EXPECT_EQ(Pod("p")->first_seen_ms, 1'000);
  EXPECT_EQ(state_.HolderOf(kTpu, "1")->value, "u-p");
  ASSERT_THAT(Commit("p", Answers(kTpu)), IsOk());
  EXPECT_EQ(Pod("p")->phase, PodPhase::kAdmitted);
  EXPECT_EQ(Pod("p")->holds.front().phase, ReservationPhase::kCommitted);
  EXPECT_THAT(Pod("p")->holds.front().edits.env,
              ElementsAre(NamedValue{"FROM", kTpu}));
  EXPECT_THAT(kinds_, ElementsAre(state::DecisionKind::kReserve,
                                  state::DecisionKind::kAllocated));
}

TEST_F(DeviceBookingTest, ThenItIsPreparedAndReadyAndKeepsThem) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  const PodPlan plan{{}, {{"main", false, {}}}};
  EXPECT_THAT(BookPod(state_, Identity("p"), 1'000, &plan, "boot").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("being allocated")));
  ASSERT_THAT(Commit("p", Answers(kTpu)), IsOk());
  const auto booked = BookPod(state_, Identity("p"), 1'000, &plan, "boot");
  ASSERT_THAT(booked, IsOk());
  Take(booked->decision);
  ASSERT_EQ(Pod("p")->phase, PodPhase::kReady);
  EXPECT_THAT(Pod("p")->answer->containers.front().env,
              ElementsAre(NamedValue{"FROM", kTpu, kTpu}));
  const auto forgotten = ForgetPod(state_, Identity("p").uid);
  ASSERT_THAT(forgotten, IsOk());
  Take(*forgotten);
  EXPECT_EQ(state_.HolderOf(kTpu, "0"), nullptr);
}

TEST_F(DeviceBookingTest, WithoutClaimsItIsReadyWithThePluginsAnswers) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  const WithoutClaims no_claims{{{"main", false, {}}}, "boot"};
  ASSERT_THAT(Commit("p", Answers(kTpu), no_claims), IsOk());
  ASSERT_EQ(Pod("p")->phase, PodPhase::kReady);
  EXPECT_EQ(Pod("p")->boot_id, "boot");
  EXPECT_THAT(Pod("p")->answer->containers.front().env,
              ElementsAre(NamedValue{"FROM", kTpu, kTpu}));
  // What BookPod would have made of it, and it has nothing to add.
  const PodPlan plan{{}, {{"main", false, {}}}};
  const auto booked = BookPod(state_, Identity("p"), 1'000, &plan, "boot");
  ASSERT_THAT(booked, IsOk());
  EXPECT_FALSE(state::IsWorthWriting(booked->decision));
}

TEST_F(DeviceBookingTest, WhoComesSecondPlansAgain) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  EXPECT_THAT(Reserve("q", {Plan("q", kTpu, {"0", "1"})}),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("'0'")));
  EXPECT_EQ(Pod("q"), nullptr);
  EXPECT_THAT(Reserve("q", {Plan("q", kTpu, {"1"})}), IsOk());
}

TEST_F(DeviceBookingTest, AFailureFreesAllOfThePod) {
  ASSERT_THAT(
      Reserve("p", {Plan("p", kNic, {"0"}), Plan("p", kTpu, {"0", "1"})}),
      IsOk());
  Free("p");
  EXPECT_EQ(Pod("p")->phase, PodPhase::kWaiting);
  EXPECT_EQ(state_.HolderOf(kNic, "0"), nullptr);
  EXPECT_EQ(state_.HolderOf(kTpu, "1"), nullptr);
  EXPECT_THAT(Commit("p", Answers(kTpu)), StatusIs(absl::StatusCode::kAborted));
  Free("p");
  EXPECT_EQ(kinds_.size(), 2u);
}

TEST_F(DeviceBookingTest, WhatIsCommittedStaysWhenMoreIsReserved) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  ASSERT_THAT(Commit("p", Answers(kTpu)), IsOk());
  EXPECT_THAT(Reserve("p", {Plan("p", kTpu, {"1"})}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("holds devices of 'example.com/tpu'")));
  ASSERT_THAT(Reserve("p", {Plan("p", kNic, {"0"})}), IsOk());
  EXPECT_EQ(Pod("p")->phase, PodPhase::kAllocating);
  Free("p");
  EXPECT_EQ(Pod("p")->phase, PodPhase::kAdmitted);
  EXPECT_EQ(Pod("p")->holds.size(), 1u);
}

TEST_F(DeviceBookingTest, EveryReservationNeedsItsAnswer) {
  ASSERT_THAT(Reserve("p", {Plan("p", kNic, {"0"}), Plan("p", kTpu, {"0"})}),
              IsOk());
  EXPECT_THAT(Commit("p", Answers(kTpu)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(kNic)));
  EXPECT_EQ(Pod("p")->phase, PodPhase::kAllocating);
}

TEST_F(DeviceBookingTest, ARejectedPodHoldsNothing) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  const auto rejected =
      RejectPod(state_, Identity("p"), 1'000,
                {Verdict::Kind::kReject, "UnexpectedAdmissionError", "no", {}});
  ASSERT_THAT(rejected, IsOk());
  Take(*rejected);
  EXPECT_EQ(state_.HolderOf(kTpu, "0"), nullptr);
  EXPECT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is Rejected")));
}

TEST_F(DeviceBookingTest, ARestartFreesWhatNoPluginAnsweredFor) {
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  ASSERT_THAT(Reserve("q", {Plan("q", kTpu, {"1"})}), IsOk());
  ASSERT_THAT(Commit("q", Answers(kTpu)), IsOk());
  const Decision decision = FreeAllReserved(state_, "the outcome is unknown");
  EXPECT_THAT(decision.pods, ElementsAre(ObjectName{"default", "p"}));
  Take(decision);
  EXPECT_EQ(state_.HolderOf(kTpu, "0"), nullptr);
  EXPECT_NE(state_.HolderOf(kTpu, "1"), nullptr);
  EXPECT_THAT(FreeAllReserved(state_, "").changes, IsEmpty());
}

TEST_F(DeviceBookingTest, WithoutAPlanThereIsNothingToDecide) {
  ASSERT_THAT(Reserve("p", {}), IsOk());
  EXPECT_EQ(Pod("p"), nullptr);
}

class InitDevicesTest : public DeviceBookingTest {
 protected:
  /// Pod `p` is Ready: `init` had 0 and 1, `main` has taken 0 over.
  void MakeReady() {
    Reservation init = Plan("p", kTpu, {"0", "1"}, "init");
    init.kind = device::ContainerKind::kInit;
    ASSERT_THAT(Reserve("p", {init, Plan("p", kTpu, {"0"})}), IsOk());
    ASSERT_THAT(Commit("p", BothAnswers()), IsOk());
    const PodPlan plan{{}, {{"init", true, {}}, {"main", false, {}}}};
    const auto booked = BookPod(state_, Identity("p"), 1'000, &plan, "boot");
    ASSERT_THAT(booked, IsOk());
    Take(booked->decision);
    ASSERT_EQ(Pod("p")->phase, PodPhase::kReady);
  }

  static AllocateAnswers BothAnswers() {
    AllocateAnswers answers = Answers(kTpu);
    answers[{"init", kTpu}] = answers[{"main", kTpu}];
    return answers;
  }

  absl::Status End(const std::string& boot = "boot") {
    const auto decision = ReleaseInitDevices(state_, Identity("p").uid, boot);
    if (decision.ok()) Take(*decision);
    return decision.status();
  }

  const ContainerDevices& AnswerOf(std::size_t container) const {
    return Pod("p")->answer->containers.at(container);
  }
};

// W-14
TEST_F(InitDevicesTest, WhatNobodyTookOverIsFreeOnceTheyHaveEnded) {
  MakeReady();
  ASSERT_THAT(End(), IsOk());
  EXPECT_EQ(kinds_.back(), state::DecisionKind::kInitEnded);
  EXPECT_NE(state_.HolderOf(kTpu, "0"), nullptr);
  EXPECT_EQ(state_.HolderOf(kTpu, "1"), nullptr);
  EXPECT_TRUE(AnswerOf(0).devices_released);
  EXPECT_THAT(AnswerOf(0).env, IsEmpty());
  EXPECT_THAT(AnswerOf(0).resources, IsEmpty());
  EXPECT_FALSE(AnswerOf(1).devices_released);
  EXPECT_THAT(AnswerOf(1).resources, ElementsAre(HeldResource{kTpu, {"0"}}));
  const std::size_t batches = kinds_.size();
  ASSERT_THAT(End(), IsOk());
  EXPECT_EQ(kinds_.size(), batches) << "nothing is left to give back";
}

TEST_F(InitDevicesTest, OnlyAReadyPodOfThisBootHasInitContainersThatEnded) {
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(Reserve("p", {Plan("p", kTpu, {"0"})}), IsOk());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kFailedPrecondition));
  Free("p");
  MakeReady();
  EXPECT_THAT(End("another"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(InitDevicesTest, TheyAreChosenAnewBeforeTheyRunAgain) {
  MakeReady();
  ASSERT_THAT(End(), IsOk());
  EXPECT_THAT(
      NeedsOfHolds(*Pod("p")),
      ElementsAre(
          device::DeviceNeed{"init", device::ContainerKind::kInit, kTpu, 2},
          device::DeviceNeed{"main", device::ContainerKind::kApp, kTpu, 1}));
  Reservation init = Plan("p", kTpu, {"0", "7"}, "init");
  init.kind = device::ContainerKind::kInit;
  ASSERT_THAT(Reserve("p", {init}), IsOk());
  EXPECT_EQ(Pod("p")->phase, PodPhase::kReady) << "it runs on";
  EXPECT_NE(state_.HolderOf(kTpu, "7"), nullptr);
  EXPECT_TRUE(HasReserved(*Pod("p")));
  Free("p");
  EXPECT_EQ(state_.HolderOf(kTpu, "7"), nullptr);
  EXPECT_TRUE(AnswerOf(0).devices_released);
  ASSERT_THAT(Reserve("p", {init}), IsOk());
  ASSERT_THAT(Commit("p", BothAnswers()), IsOk());
  EXPECT_EQ(Pod("p")->phase, PodPhase::kReady);
  EXPECT_FALSE(AnswerOf(0).devices_released);
  EXPECT_THAT(AnswerOf(0).resources,
              ElementsAre(HeldResource{kTpu, {"0", "7"}}));
}

TEST_F(InitDevicesTest, AReadyPodGetsNothingElse) {
  MakeReady();
  EXPECT_THAT(
      Reserve("p", {Plan("p", kNic, {"0"})}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("any more")));
  EXPECT_THAT(
      Reserve("p", {Plan("p", kTpu, {"9"}, "init")}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("already")));
}

class HoldTableTest : public InitDevicesTest {
 protected:
  void Enter(const std::string& state) {
    std::vector<std::string> events;
    if (state == "Reserved") {
      events = {"Reserve"};
    } else if (state != "None") {
      MakeReady();
    }
    if (state == "Released") events = {"InitEnded"};
    if (state == "ReservedAnew") events = {"InitEnded", "Reserve"};
    for (const std::string& event : events) After(event);
    ASSERT_EQ(State(), state);
  }

  std::string State() const {
    const PodRecord* pod = Pod("p");
    if (pod == nullptr || pod->holds.empty()) return "None";
    switch (pod->holds.front().phase) {
      case ReservationPhase::kReserved:
        return pod->phase == PodPhase::kReady ? "ReservedAnew" : "Reserved";
      case ReservationPhase::kCommitted:
        return "Committed";
      case ReservationPhase::kReleased:
        return "Released";
    }
    return "";
  }

  /// The state after the event, or that it was refused.
  std::string After(const std::string& event) {
    absl::Status status;
    if (event == "Reserve") {
      Reservation init = Plan("p", kTpu, {"0", "1"}, "init");
      init.kind = device::ContainerKind::kInit;
      status = Reserve("p", {init});
    } else if (event == "Commit") {
      status = Commit("p", BothAnswers());
    } else if (event == "Free") {
      Free("p");
    } else if (event == "InitEnded") {
      status = End();
    } else if (event == "Forget") {
      const auto decision = ForgetPod(state_, Identity("p").uid);
      status = decision.status();
      if (decision.ok()) Take(*decision);
    }
    return status.ok() ? State() : "refused";
  }
};

TEST_F(HoldTableTest, AgreesWithItsReadme) {
  const StateTable table("lib/claim/README.md", "Hold");
  std::size_t cells = 0;
  for (const char* state :
       {"None", "Reserved", "Committed", "Released", "ReservedAnew"}) {
    for (const char* event :
         {"Reserve", "Commit", "Free", "InitEnded", "Forget"}) {
      state_ = state::State();
      Enter(state);
      EXPECT_EQ(After(event), table.At(state, event))
          << state << " x " << event;
      ++cells;
    }
  }
  EXPECT_EQ(cells, table.size());
}

}  // namespace
}  // namespace devmgr::claim
