// SPDX-License-Identifier: Apache-2.0
//
// What a driver prepared is void, and is prepared again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claim/claim_fixture.h"
#include "claim/claim_machine.h"
#include "claim/spec_recovery.h"

namespace devmgr::claim {
namespace {

using state::PodPhase;
using testing::IsEmpty;

class RepairTest : public ClaimTest {
 protected:
  void SetUp() override {
    objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
    Prepare(p_);
    Prepare(q_);
    AnswerAll();
  }

  bool Repair(const std::string& claim, const std::string& driver) {
    return ledger_.Take(PrepareAgain(state(), ClaimUid{claim}, driver));
  }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
  const Pod q_ = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
};

TEST_F(RepairTest, TakesAllPodsOfTheClaimBackUntilTheDriverAnswers) {
  const auto before = CdiOf(p_, "c");
  EXPECT_TRUE(Repair("u-C", kDriver));
  for (const Pod* pod : {&p_, &q_}) {
    EXPECT_EQ(PodOf(*pod).phase, PodPhase::kPreparing);
    EXPECT_EQ(PodOf(*pod).answer, nullptr);
  }
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_FALSE(Repair("u-C", kDriver));
  Book(p_, nullptr);
  AnswerAll();
  EXPECT_EQ(CdiOf(p_, "c"), before);
  EXPECT_EQ(CdiOf(q_, "c"), before);
}

TEST_F(RepairTest, AReleaseInTheMiddleUnpreparesTheClaim) {
  EXPECT_TRUE(Repair("u-C", kDriver));
  EXPECT_TRUE(Release(p_));
  EXPECT_TRUE(Release(q_));
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_FALSE(Repair("u-C", kDriver));
  AnswerAll();
  EXPECT_FALSE(Knows("u-C"));
}

TEST_F(RepairTest, NothingElseIsTouched) {
  EXPECT_FALSE(Repair("u-nobody", kDriver));
  EXPECT_FALSE(Repair("u-C", "other.example.com"));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
}

// --- A driver that remembers
// --------------------------------------------------

class RenewalTest : public RepairTest {
 protected:
  const state::DriverRecord& Part() const {
    return ClaimOf("u-C").drivers.at(kDriver);
  }
  KnownIdle Idle(std::set<std::string> pods) const {
    KnownIdle idle{ledger_.boot_id(), {}};
    for (const std::string& pod : pods) idle.pods.insert(PodUid{pod});
    return idle;
  }
  SpecRemedy Remedy(const KnownIdle& idle) const {
    return RemedyFor(state(), ClaimOf("u-C"), kDriver, idle);
  }
  bool RenewClaim(const KnownIdle& idle) {
    return ledger_.Take(Renew(state(), ClaimUid{"u-C"}, kDriver, idle));
  }
  /// The driver tells what it told before, and the specs are or are not there.
  void AnswersWith(const SpecLook& look) {
    ledger_.Take(RecordPrepared(
        state(), kDriver,
        {{ClaimUid{"u-C"}, {Prepared("dev-1", {"d.com/x=u-C"}, {"r"})}}},
        ledger_.boot_id(), look));
  }
  void AnswersInVain() { AnswersWith({{}, {ClaimUid{"u-C"}}}); }
};

TEST_F(RenewalTest, IsUnpreparedAndPreparedForPodsThatKeepIt) {
  EXPECT_EQ(Remedy(Idle({"u-P", "u-Q"})), SpecRemedy::kPrepareAgain);
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(Remedy(Idle({"u-P", "u-Q"})), SpecRemedy::kRenew);
  EXPECT_TRUE(RenewClaim(Idle({"u-P", "u-Q"})));
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_EQ(PodOf(q_).answer, nullptr);
  EXPECT_EQ(PodsOf("u-C"), (std::set<std::string>{"u-P", "u-Q"}));
  // What the driver may still have, for those that want to hear of it.
  EXPECT_EQ(Part().LastCdiDeviceIds(), std::vector<std::string>{"d.com/x=u-C"});
  // A retry of the pod takes nothing back.
  Book(p_, nullptr);
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  Unprepared(kDriver, {"u-C"});
  EXPECT_EQ(StateOf(&Part()), ClaimState::kPreparing);
  EXPECT_THAT(Part().LastCdiDeviceIds(), IsEmpty());
  EXPECT_EQ(PodsOf("u-C"), (std::set<std::string>{"u-P", "u-Q"}));
  AnswersWith({{ClaimUid{"u-C"}}, {}});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(q_).phase, PodPhase::kReady);
  // The incident is over.
  EXPECT_EQ(Remedy(Idle({})), SpecRemedy::kPrepareAgain);
}

TEST_F(RenewalTest, IsNotDoneUnderAContainerThatMayRun) {
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_EQ(Remedy(Idle({"u-P"})), SpecRemedy::kStopPods);
  EXPECT_THAT(PodsThatMayRun(state(), ClaimOf("u-C"), Idle({"u-P"})),
              testing::ElementsAre("ns/Q"));
  EXPECT_FALSE(RenewClaim(Idle({"u-P"})));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(StateOf(&Part()), ClaimState::kPrepared);
}

TEST_F(RenewalTest, IsDoneOnce) {
  const KnownIdle idle = Idle({"u-P", "u-Q"});
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_TRUE(RenewClaim(idle));
  EXPECT_FALSE(RenewClaim(idle));
  Unprepared(kDriver, {"u-C"});
  AnswersInVain();
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(Remedy(idle), SpecRemedy::kNothing);
  EXPECT_FALSE(RenewClaim(idle));
  // Until the specs are seen.
  EXPECT_TRUE(ledger_.Take(RecordSpecsFound(state(), {ClaimUid{"u-C"}})));
  EXPECT_FALSE(ledger_.Take(RecordSpecsFound(state(), {ClaimUid{"u-C"}})));
  EXPECT_EQ(Remedy(idle), SpecRemedy::kPrepareAgain);
}

// A reboot ends all containers, and the first prepare after it is one that
// brought nothing back.
TEST_F(RenewalTest, AfterARebootTheLedgerAloneKnowsThatNothingRuns) {
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  EXPECT_EQ(StateOf(&Part()), ClaimState::kPreparing);
  EXPECT_EQ(Remedy(Idle({})), SpecRemedy::kRenew);
  EXPECT_TRUE(
      ledger_.Take(Renew(state(), ClaimUid{"u-C"}, kDriver, Idle({}),
                         {Prepared("dev-1", {"d.com/x=other"}, {"r"})})));
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  EXPECT_EQ(Part().LastCdiDeviceIds(),
            std::vector<std::string>{"d.com/x=other"});
  // In the middle the node goes down once more: the intent stands.
  ledger_.Reboot("boot-3");
  Book(p_, nullptr);
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  Unprepared(kDriver, {"u-C"});
  AnswersWith({{ClaimUid{"u-C"}}, {}});
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
}

TEST_F(RenewalTest, AReleaseInTheMiddleUnpreparesTheClaim) {
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_TRUE(RenewClaim(Idle({"u-P", "u-Q"})));
  EXPECT_TRUE(Release(p_));
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  EXPECT_TRUE(Release(q_));
  EXPECT_EQ(StateOf(&Part()), ClaimState::kUnpreparing);
  AnswerAll();
  EXPECT_FALSE(Knows("u-C"));
}

TEST_F(RenewalTest, ALateAnswerOfAPrepareChangesNothing) {
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_TRUE(RenewClaim(Idle({"u-P", "u-Q"})));
  AnswersInVain();
  EXPECT_EQ(StateOf(&Part()), ClaimState::kRenewing);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
}

TEST_F(RenewalTest, WhoWantsNoUnprepareIsNotAskedTo) {
  state::ClaimRecord claim = ClaimOf("u-C");
  claim.drivers[kDriver].skipped.unprepare = true;
  state::Decision put;
  put.changes.push_back(
      state::PutClaim{std::make_shared<const state::ClaimRecord>(claim)});
  ledger_.Take(put);
  EXPECT_TRUE(Repair("u-C", kDriver));
  AnswersInVain();
  EXPECT_EQ(Remedy(Idle({"u-P", "u-Q"})), SpecRemedy::kNothing);
}

TEST_F(RenewalTest, NothingElseIsTouched) {
  EXPECT_FALSE(
      ledger_.Take(Renew(state(), ClaimUid{"u-nobody"}, kDriver, Idle({}))));
  EXPECT_FALSE(ledger_.Take(
      Renew(state(), ClaimUid{"u-C"}, "other.example.com", Idle({}))));
  EXPECT_FALSE(ledger_.Take(RecordSpecsFound(state(), {ClaimUid{"u-nobody"}})));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
}

}  // namespace
}  // namespace devmgr::claim
