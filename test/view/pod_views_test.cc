// SPDX-License-Identifier: Apache-2.0
#include "view/pod_views.h"

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/devices.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodViewsTest : public MomentTest {
 protected:
  PodViewsTest() {
    auto pod = MakePod("p", PodPhase::kPreparing);
    pod->claims = {claim_->uid};
    moment_.state.Put(claim_);
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }

  PodInfo Shown(const std::string& name = "p") const {
    const state::PodRecord& pod = *moment_.state.FindPod(Uid(name));
    const PodInfo info = InfoOf(moment_, pod);
    EXPECT_EQ(info.state, StateOf(moment_, pod));
    return info;
  }
  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  void Note(const std::string& name, Verdict verdict) {
    moment_.pods.notes.insert_or_assign(Uid(name), std::move(verdict));
  }

  const std::shared_ptr<const state::ClaimRecord> claim_ =
      MakeClaim("c", Uid("p"));
};

TEST_F(PodViewsTest, APodThatIsPreparedSaysNothingMore) {
  EXPECT_EQ(Shown().state, PodState::kPreparing);
  EXPECT_EQ(Shown().reason, "");
  EXPECT_THAT(Shown().claims, ElementsAre("c"));
}

TEST_F(PodViewsTest, ANoteMakesAPodWaitUnlessItsDriversAreAsked) {
  Note("p", {Verdict::Kind::kWait,
             "FailedPrepare",
             "no luck",
             {{WaitingFor::Kind::kDriver, kDriver}}});
  EXPECT_EQ(Shown().state, PodState::kWaiting);
  EXPECT_EQ(Shown().reason, "FailedPrepare");
  EXPECT_EQ(Shown().message, "no luck");
  EXPECT_THAT(Shown().waiting_for, SizeIs(1));
  moment_.pods.asking.insert_or_assign(Uid("p"), 1);
  EXPECT_EQ(Shown().state, PodState::kPreparing);
  EXPECT_EQ(Shown().reason, "FailedPrepare");
}

TEST_F(PodViewsTest, OfAReadyPodOnlyARefusalIsSaid) {
  Put(MakePod("r", PodPhase::kReady));
  Note("r", {Verdict::Kind::kWait, "Later", "it waits", {}});
  EXPECT_EQ(Shown("r").state, PodState::kReady);
  EXPECT_EQ(Shown("r").reason, "");
  Note("r", {Verdict::Kind::kReject, "AsksForOthers", "it asks for more", {}});
  EXPECT_EQ(Shown("r").state, PodState::kReady);
  EXPECT_EQ(Shown("r").reason, "AsksForOthers");
}

TEST_F(PodViewsTest, ARejectionIsWhatTheLedgerSays) {
  auto pod = MakePod("r", PodPhase::kRejected);
  pod->reason = "Bad";
  Put(pod);
  Note("r", {Verdict::Kind::kWait, "Later", "it waits", {}});
  EXPECT_EQ(Shown("r").state, PodState::kRejected);
  EXPECT_EQ(Shown("r").reason, "Bad");
}

TEST_F(PodViewsTest, APodOfAnEarlierBootIsPreparedAgain) {
  auto pod = MakePod("r", PodPhase::kReady);
  pod->boot_id = "boot-before";
  Put(pod);
  EXPECT_EQ(Shown("r").state, PodState::kPreparing);
  EXPECT_EQ(Shown("r").reason, "Rebooted");
  // A stopped ledger is of whatever boot.
  moment_.terms = nullptr;
  EXPECT_EQ(Shown("r").state, PodState::kReady);
}

TEST_F(PodViewsTest, NamesTheDriversThatHaveNotAnswered) {
  moment_.calls.unanswered.insert_or_assign({claim_->uid, kDriver},
                                            {true, 1'000});
  EXPECT_EQ(Shown().reason, "DriverAsked");
  EXPECT_THAT(Shown().message,
              HasSubstr("DRA driver gpu.example.com was asked at "
                        "1970-01-01T00:00:01Z to prepare ResourceClaim "
                        "'default/c' and has not answered yet"));
  EXPECT_THAT(Shown().waiting_for, SizeIs(1));
  moment_.calls.unanswered.insert_or_assign({claim_->uid, kDriver}, {});
  EXPECT_THAT(Shown().message,
              HasSubstr("the call that has DRA driver gpu.example.com prepare "
                        "ResourceClaim 'default/c' waits for other calls"));
}

TEST_F(PodViewsTest, OfClaimsTheLastErrorIsShown) {
  EXPECT_EQ(InfoOf(moment_, *claim_).drivers[0].last_error, "");
  moment_.calls.errors.insert_or_assign(
      {claim_->uid, kDriver}, {kDriver, absl::InternalError("broken"), false});
  EXPECT_EQ(InfoOf(moment_, *claim_).drivers[0].last_error, "broken");
}

TEST_F(PodViewsTest, DebtsCountTheCallsThatFailedSinceTheLedgerWasWritten) {
  EXPECT_THAT(DebtsOf(moment_), IsEmpty());
  auto owed = MakeClaim("o", Uid("gone"));
  owed->drivers[kDriver].phase = state::DriverPhase::kUnpreparing;
  owed->drivers[kDriver].debt.emplace().attempts = 2;
  moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(owed));
  ASSERT_THAT(DebtsOf(moment_), SizeIs(1));
  EXPECT_EQ(DebtsOf(moment_)[0].attempts, 2U);
  EXPECT_EQ(DebtsOf(moment_)[0].policy, "block");
  moment_.calls.attempts.insert_or_assign({owed->uid, kDriver}, 5);
  EXPECT_EQ(DebtsOf(moment_)[0].attempts, 5U);
}

TEST_F(PodViewsTest, OfSeveralClaimsEachDriverIsNamedOnce) {
  const std::shared_ptr<const state::ClaimRecord> second =
      MakeClaim("c2", Uid("p"));
  moment_.state.Put(second);
  auto pod = MakePod("p", PodPhase::kPreparing);
  pod->claims = {claim_->uid, second->uid, ClaimUid{"uid-missing"}};
  Put(pod);
  Note("p", {Verdict::Kind::kWait, "FailedPrepare", "no luck", {}});
  for (const ClaimUid& uid : {claim_->uid, second->uid}) {
    moment_.calls.unanswered.insert_or_assign({uid, kDriver}, {true, 1'000});
  }
  EXPECT_EQ(Shown().reason, "FailedPrepare") << "why it waits is kept";
  EXPECT_THAT(Shown().message, ::testing::StartsWith("no luck; DRA driver"));
  EXPECT_THAT(Shown().message, HasSubstr("'default/c' and has not"));
  EXPECT_THAT(Shown().message, HasSubstr("'default/c2' and has not"));
  EXPECT_THAT(Shown().waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kDriver, kDriver}));
}

// Why it cannot be stopped yet comes after why it has to leave.
TEST_F(PodViewsTest, APodThatIsEvictedShowsWhatKeepsIt) {
  auto pod = MakePod("r", PodPhase::kReady);
  pod->eviction = state::Eviction{"DeviceTaintManager", "taint 'hot'", 1'000};
  Put(pod);
  EXPECT_EQ(Shown("r").state, PodState::kEvicting);
  const std::string before = Shown("r").message;
  Note("r", {Verdict::Kind::kWait, "Runs", "a container runs", {}});
  EXPECT_EQ(Shown("r").reason, "DeviceTaintManager");
  EXPECT_EQ(Shown("r").message, before + "; a container runs");
}

// Feature gate ResourceHealthStatus, and the one of its messages.
TEST_F(PodViewsTest, HealthIsShownByItsGates) {
  auto pod = MakePod("h", PodPhase::kAdmitted);
  state::DeviceHold hold;
  hold.container = "main";
  hold.resource = "example.com/gpu";
  hold.phase = device::ReservationPhase::kCommitted;
  hold.devices = {{"d0", {}}};
  pod->holds = {hold};
  Put(pod);
  const auto inventory = device::Live({device::Unhealthy("d0")});
  moment_.resources.insert_or_assign(
      "example.com/gpu",
      {inventory.state(), 0, inventory.figures(), inventory.devices()});
  const auto shown = [&](bool health, bool messages) {
    auto terms = std::make_shared<Terms>(*moment_.terms);
    terms->health = health;
    terms->health_messages = messages;
    moment_.terms = terms;
    return Shown("h").allocated_resources;
  };
  const auto all = shown(true, true);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].resources.at(0).resources.at(0).message,
            "reported by the plugin");
  const auto silent = shown(true, false);
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_EQ(silent[0].resources.at(0).resources.at(0).health,
            DeviceHealth::kUnhealthy);
  EXPECT_EQ(silent[0].resources.at(0).resources.at(0).message, "");
  EXPECT_THAT(shown(false, true), IsEmpty());
}

}  // namespace
}  // namespace devmgr::view
