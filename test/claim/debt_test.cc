// SPDX-License-Identifier: Apache-2.0
//
// What drivers owe that do not unprepare, and which calls they do without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "claim/claim_fixture.h"
#include "state/views.h"

namespace devmgr::claim {
namespace {

using Policy = DebtPolicy::Kind;
using state::PodPhase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kNow = 1'000'000;

class DebtTest : public ClaimTest {
 protected:
  void SetUp() override {
    objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
    Prepare(p_);
    AnswerAll();
  }

  void ReleaseP(const std::map<std::string, std::string>& absent = {}) {
    ledger_.Take(BeginRelease(state(), PodUid{"u-P"}, {absent, rules_, kNow}));
  }
  /// The driver has not unprepared C; false when nothing is to be written.
  bool Fails(std::uint32_t attempts, const std::string& error,
             std::int64_t now_ms = kNow) {
    return ledger_.Take(RecordDebts(state(), kDriver,
                                    {{ClaimUid{"u-C"}, {attempts, error}}},
                                    rules_, now_ms));
  }
  const state::Debt* DebtOfC() const {
    const auto& debt = ClaimOf("u-C").drivers.at(kDriver).debt;
    return debt.has_value() ? &*debt : nullptr;
  }
  std::vector<ClaimUid> ClaimsOfP() const { return PodOf(p_).claims; }

  DebtRules rules_;
  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
};

TEST_F(DebtTest, ADriverThatIsNotThereOwesFromTheFirstBatchOn) {
  ReleaseP({{kDriver, "it is not there"}});
  ASSERT_NE(DebtOfC(), nullptr);
  EXPECT_EQ(*DebtOfC(), (state::Debt{kNow, 0, "it is not there", {"ns/P"}}));
  EXPECT_THAT(ClaimsOfP(), ElementsAre(ClaimUid{"u-C"}));
  Unprepared(kDriver, {"u-C"});
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(ClaimsOfP(), IsEmpty());
}

TEST_F(DebtTest, AFailedCallIsADebtUntilTheDriverHasDoneIt) {
  ReleaseP();
  EXPECT_EQ(DebtOfC(), nullptr);
  EXPECT_TRUE(Fails(1, "busy"));
  ASSERT_NE(DebtOfC(), nullptr);
  EXPECT_EQ(DebtOfC()->attempts, 1u);
  EXPECT_EQ(DebtOfC()->last_error, "busy");
  const auto debts = state::DebtsOf(state());
  ASSERT_EQ(debts.size(), 1u);
  EXPECT_EQ(debts[0].claim, (ObjectName{"ns", "C"}));
  EXPECT_EQ(debts[0].driver, kDriver);
  EXPECT_THAT(debts[0].pods, ElementsAre("ns/P"));
}

TEST_F(DebtTest, ManyFailuresAreWrittenSeldom) {
  ReleaseP();
  int written = 0;
  for (std::uint32_t attempt = 1; attempt <= 1'000; ++attempt) {
    if (Fails(attempt, "busy", kNow + attempt)) ++written;
  }
  EXPECT_EQ(written, 10);  // 1, 2, 4 ... 512
  EXPECT_EQ(DebtOfC()->attempts, 512u);
  EXPECT_EQ(DebtOfC()->since_ms, kNow + 1);
  EXPECT_TRUE(Fails(1'001, "gone"));
  EXPECT_EQ(DebtOfC()->last_error, "gone");
  EXPECT_EQ(DebtOfC()->attempts, 1'001u);
}

TEST_F(DebtTest, OnlyWhatIsToBeUnpreparedCanBeOwed) {
  EXPECT_FALSE(Fails(1, "late answer"));
  EXPECT_EQ(DebtOfC(), nullptr);
}

TEST_F(DebtTest, DeferLetsThePodGoAndKeepsTheClaim) {
  rules_.by_driver[kDriver] = {Policy::kDefer};
  ReleaseP();
  EXPECT_THAT(ClaimsOfP(), ElementsAre(ClaimUid{"u-C"}));
  Fails(1, "busy");
  EXPECT_THAT(ClaimsOfP(), IsEmpty());
  EXPECT_THAT(Forget(p_), IsOk());
  EXPECT_THAT(PodsOf("u-C"), IsEmpty());
  EXPECT_THAT(DebtOfC()->pods, ElementsAre("ns/P"));
  EXPECT_THAT(state::DevicesOf(state()), testing::SizeIs(1));
  // Nobody else gets it meanwhile.
  const Pod q = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
  EXPECT_EQ(Prepare(q).reason, "ClaimBeingUnprepared");
  Unprepared(kDriver, {"u-C"});
  EXPECT_FALSE(Knows("u-C"));
}

TEST_F(DebtTest, ARuleThatComesLaterCountsForWhatIsOwedAlready) {
  ReleaseP({{kDriver, "it is not there"}});
  EXPECT_FALSE(Fails(0, "it is not there"));
  rules_.fallback = {Policy::kDefer};
  EXPECT_TRUE(Fails(0, "it is not there"));
  EXPECT_THAT(ClaimsOfP(), IsEmpty());
}

TEST_F(DebtTest, WhatIsDeferredKeepsItsDevices) {
  rules_.fallback = {Policy::kDefer};
  ReleaseP({{kDriver, "it is not there"}});
  ASSERT_THAT(Forget(p_), IsOk());
  // The control plane takes the claim for gone, and its device for free.
  objects_ = SnapshotOf({ClaimBuilder("D").From(kDriver).For("u-Q", "Q")});
  const Pod q = PodBuilder("Q").Claim("c1", "D").Container("c").Uses("c1");
  const Verdict verdict = Prepare(q);
  EXPECT_EQ(verdict.reason, "DeviceBeingUnprepared");
  EXPECT_THAT(verdict.message, HasSubstr("ns/C"));
  EXPECT_THAT(verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "ns/C"}));
  objects_ = SnapshotOf(
      {ClaimBuilder("D").From(kDriver).AdminAccess().For("u-Q", "Q")});
  EXPECT_EQ(Prepare(q).kind, Kind::kAdmit);
}

TEST_F(DebtTest, APodWaitsWhileOneOfItsDriversHasNotEvenFailed) {
  Release(p_);
  AnswerAll();
  EXPECT_THAT(Forget(p_), IsOk());
  objects_ = SnapshotOf({ClaimForP().From(kOtherDriver, "dev-2", "r2")});
  Prepare(p_);
  AnswerAll();
  rules_.fallback = {Policy::kDefer};
  ReleaseP();
  Fails(1, "busy");
  EXPECT_THAT(ClaimsOfP(), ElementsAre(ClaimUid{"u-C"}));
  ledger_.Take(
      RecordUnprepared(state(), kOtherDriver, {ClaimUid{"u-C"}}, rules_));
  EXPECT_THAT(ClaimsOfP(), IsEmpty());
  EXPECT_TRUE(Knows("u-C"));
}

TEST_F(DebtTest, APodWithExtendedResourcesIsNotDeferred) {
  objects_ = SnapshotOf({ClaimForP("E").For("u-R", "R")});
  const Pod r = PodBuilder("R")
                    .Container("main")
                    .Requests("example.com/gpu")
                    .SpecialClaim("E")
                    .Maps("main", "example.com/gpu", "r");
  Prepare(r);
  AnswerAll();
  rules_.by_driver[kDriver] = {Policy::kDefer};
  ledger_.Take(BeginRelease(state(), PodUid{"u-R"},
                            {{{kDriver, "away"}}, rules_, kNow}));
  EXPECT_THAT(PodOf(r).claims, ElementsAre(ClaimUid{"u-E"}));
  EXPECT_THAT(state().ClassHoldersOf("example.com/gpu", 9),
              ElementsAre(PodUid{"u-R"}));
}

TEST_F(DebtTest, ForgivenIsWhatIsDueAndNothingElse) {
  rules_.by_driver[kDriver] = {Policy::kForgive, std::chrono::hours(1)};
  ReleaseP();
  EXPECT_THAT(ForgivableDebts(state(), rules_), IsEmpty());
  Fails(1, "busy");
  const auto debts = ForgivableDebts(state(), rules_);
  ASSERT_THAT(debts, ElementsAre(ForgivableDebt{
                         {"u-C"}, kDriver, kNow, std::chrono::hours(1)}));
  EXPECT_FALSE(ledger_.Take(ForgiveDebts(state(), rules_, {})));
  EXPECT_THAT(ClaimsOfP(), ElementsAre(ClaimUid{"u-C"}));
  EXPECT_TRUE(ledger_.Take(ForgiveDebts(state(), rules_, debts)));
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(ClaimsOfP(), IsEmpty());
}

TEST_F(DebtTest, ForgivingLeavesClaimsInUseAlone) {
  Release(p_);
  AnswerAll();
  EXPECT_THAT(Forget(p_), IsOk());
  objects_ = SnapshotOf({ClaimBuilder("C").For("u-P")});
  Prepare(p_);
  rules_.fallback = {Policy::kForgive, std::chrono::hours(1)};
  EXPECT_FALSE(ledger_.Take(ForgiveDebts(
      state(), rules_, {{{"u-C"}, kDriver, kNow, std::chrono::hours(1)}})));
  EXPECT_TRUE(Knows("u-C"));
}

TEST_F(DebtTest, ForgivingLeavesADebtAloneThatIsAnotherByNow) {
  rules_.fallback = {Policy::kForgive, std::chrono::hours(1)};
  ReleaseP({{kDriver, "away"}});
  EXPECT_FALSE(ledger_.Take(ForgiveDebts(
      state(), rules_, {{{"u-C"}, kDriver, kNow - 1, std::chrono::hours(1)}})));
  EXPECT_TRUE(Knows("u-C"));
}

TEST_F(DebtTest, WhatOtherNodesReachBlocksUnlessTheDriverIsNamed) {
  state::ClaimRecord claim;
  claim.network_attached = true;
  rules_.fallback = {Policy::kDefer};
  EXPECT_EQ(rules_.For(claim, kDriver).kind, Policy::kBlock);
  rules_.by_driver[kDriver] = {Policy::kDefer};
  EXPECT_EQ(rules_.For(claim, kDriver).kind, Policy::kDefer);
  claim.network_attached = false;
  EXPECT_EQ(rules_.For(claim, kOtherDriver).kind, Policy::kDefer);
}

TEST_F(DebtTest, WhetherOtherNodesReachItIsInTheLedger) {
  EXPECT_FALSE(ClaimOf("u-C").network_attached);
  Release(p_);
  AnswerAll();
  EXPECT_THAT(Forget(p_), IsOk());
  ResourceClaim claim = ClaimForP();
  claim.status.allocation->many_nodes = true;
  objects_ = SnapshotOf({claim});
  Prepare(p_);
  EXPECT_TRUE(ClaimOf("u-C").network_attached);
}

TEST_F(DebtTest, AnOperatorGivesAClaimUpThatIsBeingUnprepared) {
  const auto early = ForceRelease(state(), {"ns", "C"}, "driver is gone");
  EXPECT_THAT(early, StatusIs(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("is used by ns/P")));
  ReleaseP();
  EXPECT_THAT(
      ForceRelease(state(), {"ns", "C"}, ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reason")));
  EXPECT_THAT(ForceRelease(state(), {"ns", "X"}, "r"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ns/X")));
  const auto decision = ForceRelease(state(), {"ns", "C"}, "driver is gone");
  ASSERT_THAT(decision, IsOk());
  EXPECT_THAT(decision->message, HasSubstr("driver is gone"));
  EXPECT_THAT(decision->message, HasSubstr(kDriver));
  EXPECT_EQ(decision->kind, state::DecisionKind::kForgiven);
  ledger_.Take(*decision);
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(Forget(p_), IsOk());
}

TEST_F(DebtTest, PoliciesAsText) {
  EXPECT_EQ(DebtPolicyText({Policy::kBlock}), "block");
  EXPECT_EQ(DebtPolicyText({Policy::kDefer}), "defer");
  EXPECT_EQ(DebtPolicyText({Policy::kForgive, std::chrono::hours(2)}),
            "forgiveAfter: 2h");
  EXPECT_EQ(DebtPolicyText({Policy::kForgive, std::chrono::minutes(90)}),
            "forgiveAfter: 90m");
  EXPECT_EQ(
      DebtPolicyText({Policy::kForgive, std::chrono::milliseconds(1'500)}),
      "forgiveAfter: 1500ms");
}

class SkippedTest : public ClaimTest {
 protected:
  /// A claim with two devices of the driver and what each does without.
  void Allocate(const std::vector<std::string>& first,
                const std::vector<std::string>& second) {
    ResourceClaim claim = ClaimForP().From(kDriver, "dev-2", "r2");
    claim.status.allocation->results[0].skip_node_operations = first;
    claim.status.allocation->results[1].skip_node_operations = second;
    objects_ = SnapshotOf({claim});
  }
  void GateOn() { options_.optional_operations = true; }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
};

// DRA-108
TEST_F(SkippedTest, NoCallWhereEveryDeviceDoesWithout) {
  GateOn();
  Allocate({"*"}, {"NodePrepareResources", "NodeUnprepareResources"});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_TRUE(Release(p_));
  EXPECT_FALSE(Knows("u-C"));
  EXPECT_THAT(Forget(p_), IsOk());
}

// DRA-109
TEST_F(SkippedTest, OneDeviceThatNeedsCallsHasThemMade) {
  GateOn();
  Allocate({"*"}, {});
  Prepare(p_);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  AnswerAll();
  Release(p_);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
}

// DRA-110
TEST_F(SkippedTest, WithTheGateOffSuchAClaimWaits) {
  Allocate({"*"}, {"*"});
  const Verdict verdict = Prepare(p_);
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_THAT(verdict.message,
              HasSubstr("DRAOptionalNodeOperations feature gate is disabled on "
                        "kubelet"));
}

// DRA-110: what is in the ledger is ended by what is there.
TEST_F(SkippedTest, AGateThatIsTurnedOffChangesNothingForWhatIsHeld) {
  GateOn();
  Allocate({"*"}, {"*"});
  Prepare(p_);
  options_.optional_operations = false;
  EXPECT_TRUE(Release(p_));
  EXPECT_FALSE(Knows("u-C"));
}

// DRA-112
TEST_F(SkippedTest, EachCallByItself) {
  GateOn();
  Allocate({"NodeUnprepareResources", "x"}, {"NodeUnprepareResources"});
  Prepare(p_);
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  AnswerAll();
  EXPECT_TRUE(Release(p_));
  EXPECT_FALSE(Knows("u-C"));
}

TEST_F(SkippedTest, ARebootAsksNobodyEither) {
  GateOn();
  Allocate({"*"}, {"*"});
  Prepare(p_);
  ledger_.Reboot("boot-2");
  EXPECT_EQ(Book(p_, nullptr).kind, Kind::kAdmit);
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_EQ(PodOf(p_).boot_id, ledger_.boot_id());
}

TEST_F(DebtTest, AnyPolicyThatForgivesNeedsATimer) {
  DebtRules rules;
  EXPECT_FALSE(rules.Forgive());
  rules.by_driver[kDriver] = {Policy::kDefer};
  EXPECT_FALSE(rules.Forgive());
  rules.by_driver[kOtherDriver] = {Policy::kForgive, std::chrono::hours(1)};
  EXPECT_TRUE(rules.Forgive());
  rules.by_driver.clear();
  rules.fallback = {Policy::kForgive, std::chrono::hours(1)};
  EXPECT_TRUE(rules.Forgive());
}

// Whether it failed already or was not asked yet: a driver that comes is asked
// for all of it.
TEST_F(DebtTest, WhatIsToBeUnpreparedIsOwedByItsDrivers) {
  EXPECT_THAT(OwedClaims(state(), ""), IsEmpty());
  ReleaseP();
  EXPECT_THAT(OwedClaims(state(), ""), ElementsAre(ClaimUid{"u-C"}));
  EXPECT_THAT(OwedClaims(state(), kDriver), ElementsAre(ClaimUid{"u-C"}));
  EXPECT_THAT(OwedClaims(state(), kOtherDriver), IsEmpty());
  ASSERT_TRUE(Fails(1, "busy"));
  EXPECT_THAT(OwedClaims(state(), kDriver), ElementsAre(ClaimUid{"u-C"}));
  Unprepared(kDriver, {"u-C"});
  EXPECT_THAT(OwedClaims(state(), ""), IsEmpty());
}

}  // namespace
}  // namespace devmgr::claim
