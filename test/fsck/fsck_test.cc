// SPDX-License-Identifier: Apache-2.0
#include "claim/prepare_intent.h"
#include "fsck/fsck_fixture.h"

namespace devmgr::fsck {
namespace {

using state::DriverPhase;
using state::PodPhase;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(FsckTest, FindsNothingOnAHealthyNode) { EXPECT_THAT(Run(), IsEmpty()); }

TEST_F(FsckTest, WhatIsUnknownIsNotChecked) {
  specs_.files.clear();
  running_ = {};
  EXPECT_THAT(RunChecks({state_, kBoot, Past(), nullptr, nullptr}), IsEmpty());
}

TEST_F(FsckTest, FindsBrokenInvariants) {
  state::PodRecord pod = Pod();
  pod.needs[0].wants.push_back({{"nobody"}, "r", ""});
  pod.phase = PodPhase::kPreparing;
  pod.answer = nullptr;
  Put(pod);
  const Finding finding = Only("invariant");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_THAT(finding.shown.message, HasSubstr("wants claim 'nobody'"));
}

TEST_F(FsckTest, FindsAnAnswerThatIsNotThatOfTheClaims) {
  state::PodRecord pod = Pod();
  auto answer = std::make_shared<PodDevices>(*pod.answer);
  answer->containers[0].cdi_devices[0].name = "d.example.com/claim=other";
  pod.answer = answer;
  Put(pod);
  EXPECT_EQ(Only("answer").shown.object, "pod/default/p");
  // What was answered in another boot binds nobody.
  pod.boot_id = "boot-0";
  Put(pod);
  for (const Finding& finding : Run()) {
    EXPECT_NE(finding.shown.check, "answer");
  }
}

TEST_F(FsckTest, FindsAMissingSpec) {
  specs_.files[0].spec.devices = {"other"};
  const Finding finding = Only("missing-spec");
  EXPECT_EQ(finding.shown.object, "claim/default/held");
  EXPECT_THAT(finding.shown.message,
              HasSubstr(kKind + ("=" + std::string(kHeld)) + "-gpu-0"));
  EXPECT_THAT(finding.shown.repair, HasSubstr(kDriver));
}

TEST_F(FsckTest, MissesNoSpecOfAClaimThatIsNotPreparedNow) {
  specs_.files.clear();
  PutAllIntoAnotherBoot();
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(FsckTest, MissesNoSpecWhereItCouldNotLook) {
  specs_.files.clear();
  specs_.unread = {"cannot read directory '/cdi': permission denied"};
  const Finding finding = Only("unreadable-spec");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_THAT(finding.shown.message, HasSubstr("/cdi"));
}

TEST_F(FsckTest, FindsFilesThatAreNoSpecs) {
  specs_.files.push_back({"/cdi/bad.json", {}, "line 1: no", 0});
  const Finding finding = Only("unreadable-spec");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "file//cdi/bad.json");
  EXPECT_THAT(finding.shown.message, HasSubstr("line 1: no"));
}

TEST_F(FsckTest, FindsTheSpecOfAReleasedClaim) {
  AddSpec("/cdi/x.json", kKind, {std::string(kReleased) + "-gpu-0"});
  const Finding finding = Only("orphaned-spec");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_THAT(finding.shown.message, HasSubstr("'default/released'"));
  EXPECT_THAT(finding.shown.repair, HasSubstr("/cdi/x.json.orphaned"));
}

// Drivers may answer with devices of static specs, whose names tell of no
// claim: these stay when the claim goes.
TEST_F(FsckTest, AStaticSpecIsNoOrphan) {
  state::ClaimRecord claim = PreparedClaim(kReleased, "released");
  claim.drivers[kDriver].devices[0].cdi_device_ids = {"nvidia.com/gpu=0"};
  history_[0].decision.changes = {
      state::PutClaim{std::make_shared<state::ClaimRecord>(claim)}};
  EXPECT_THAT(Run(), IsEmpty());
}

// A piece of a longer word is not a claim's UID.
TEST_F(FsckTest, AShortUidNamesNobodyElsesDevice) {
  state::ClaimRecord claim = PreparedClaim("gpu", "released");
  claim.drivers[kDriver].devices[0].cdi_device_ids = {"nvidia.com/gpu=gpu0"};
  history_[0].decision.changes = {
      state::PutClaim{std::make_shared<state::ClaimRecord>(claim)}};
  AddSpec("/cdi/x.json", "nvidia.com/gpu", {"gpu0"});
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(FsckTest, AFileThatAlsoServesAHeldClaimIsNoOrphan) {
  specs_.files[0].spec.devices.push_back(std::string(kReleased) + "-gpu-0");
  const Finding finding = Only("orphaned-spec");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
}

TEST_F(FsckTest, WarnsOfTheSpecOfAClaimThatNobodyKnows) {
  AddSpec("/cdi/x.json", kKind, {std::string(kStranger) + "-gpu-0"});
  const Finding finding = Only("orphaned-spec");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.repair, "");
  EXPECT_NE(finding.shown.hint, "");
}

TEST_F(FsckTest, FindsDriversThatAreAway) {
  running_.registered.clear();
  const Finding finding = Only("absent-driver");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "driver/d.example.com");
  EXPECT_THAT(finding.shown.message, HasSubstr("'default/held'"));
}

TEST_F(FsckTest, FindsWhatADriverRefuses) {
  running_.refusals[{{kHeld}, kDriver}] = "no such GPU";
  EXPECT_THAT(Run(), IsEmpty());  // it is prepared: an old error
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver] = {};
  Put(claim);
  state::PodRecord pod = Pod();
  pod.phase = PodPhase::kPreparing;
  pod.answer = nullptr;
  Put(pod);
  const Finding finding = Only("refused");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_THAT(finding.shown.message, HasSubstr("no such GPU"));
}

TEST_F(FsckTest, FindsPodsThatTheSourceLost) {
  running_.source_pods->clear();
  const Finding finding = Only("gone-pod");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  running_.source_pods.reset();  // incomplete: nothing counts as gone
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(FsckTest, ErrorsComeFirst) {
  specs_.files.clear();
  running_.registered.clear();
  const std::vector<Finding> findings = Run();
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_TRUE(findings[0].shown.error);
  EXPECT_FALSE(findings[1].shown.error);
}

TEST_F(FsckTest, WhatIsFoundOnlyOnceWasAnAccident) {
  specs_.files.clear();
  const std::vector<Finding> before = Run();
  EXPECT_THAT(Common(before, before), SizeIs(1));
  EXPECT_THAT(Common(before, {}), IsEmpty());
}

TEST_F(FsckTest, RepairHasTheDriverPrepareAgain) {
  specs_.files.clear();
  const Finding finding = Only("missing-spec");
  const auto decision = DecideRepair(finding, state_);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->kind, state::DecisionKind::kRepair);
  EXPECT_THAT(decision->message,
              HasSubstr("no CDI spec file in '/etc/cdi', '/cdi' defines"));
  EXPECT_THAT(decision->claims, ElementsAre(ObjectName{"default", "held"}));
  EXPECT_THAT(decision->pods, ElementsAre(ObjectName{"default", "p"}));
  ASSERT_TRUE(state::Apply(state_, {5, 0, *decision, {}}).ok());
  EXPECT_EQ(Held().drivers[kDriver].phase, state::DriverPhase::kPreparing);
  EXPECT_THAT(Held().drivers[kDriver].devices, IsEmpty());
  EXPECT_EQ(Pod().phase, PodPhase::kPreparing);
  EXPECT_EQ(Pod().answer, nullptr);
  EXPECT_THAT(Run(), IsEmpty());
  // The second to come finds nothing to do.
  EXPECT_TRUE(
      absl::IsFailedPrecondition(DecideRepair(finding, state_).status()));
}

// A driver that remembers: the advice changes with what was tried.
TEST_F(FsckTest, RepairHasTheDriverUnprepareFirstWhereNoContainerRuns) {
  specs_.files.clear();
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver].spec_recovery = state::SpecRecovery::kAskedAgain;
  Put(claim);
  running_.idle_pods[{kHeld}] = {{"pod-uid"}};
  const Finding finding = Only("missing-spec");
  EXPECT_THAT(finding.shown.repair,
              HasSubstr("unprepare it and then prepare it"));
  const auto decision = DecideRepair(finding, state_);
  ASSERT_TRUE(decision.ok()) << decision.status();
  ASSERT_TRUE(state::Apply(state_, {5, 0, *decision, {}}).ok());
  EXPECT_EQ(Held().drivers[kDriver].spec_recovery,
            state::SpecRecovery::kUnprepareFirst);
  EXPECT_EQ(Pod().phase, PodPhase::kPreparing);
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(DecideRepair(finding, state_).status()));
}

TEST_F(FsckTest, SaysWhatHelpsWhereContainersMayRun) {
  specs_.files.clear();
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver].spec_recovery = state::SpecRecovery::kAskedAgain;
  Put(claim);
  const Finding finding = Only("missing-spec");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_EQ(finding.shown.repair, "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
  EXPECT_THAT(finding.shown.hint,
              AllOf(HasSubstr("'default/p'"), HasSubstr("delete these pods")));
}

TEST_F(FsckTest, GivesNoAdviceTwiceThatDidNotHelp) {
  specs_.files.clear();
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver].spec_recovery = state::SpecRecovery::kRenewed;
  Put(claim);
  running_.idle_pods[{kHeld}] = {{"pod-uid"}};
  Finding finding = Only("missing-spec");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
  EXPECT_THAT(finding.shown.hint, HasSubstr("cdiSpecDirs"));
  claim.drivers[kDriver].spec_recovery = state::SpecRecovery::kAskedAgain;
  claim.drivers[kDriver].skipped.unprepare = true;
  Put(claim);
  finding = Only("missing-spec");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
  EXPECT_THAT(finding.shown.hint, HasSubstr("wants no unprepare"));
}

// The driver's answer makes all pods of the claim Ready again.
TEST_F(FsckTest, PodsAreReadyOnceTheDriverHasPreparedAgain) {
  const state::ClaimRecord held = Held();
  specs_.files.clear();
  const auto decision = DecideRepair(Only("missing-spec"), state_);
  ASSERT_TRUE(state::Apply(state_, {5, 0, *decision, {}}).ok());
  const state::Decision prepared = claim::RecordPrepared(
      state_, kDriver, {{{kHeld}, held.drivers.at(kDriver).devices}}, kBoot,
      {{{kHeld}}, {}});
  ASSERT_TRUE(state::Apply(state_, {6, 0, prepared, {}}).ok());
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(Pod().phase, PodPhase::kReady);
  EXPECT_NE(Pod().answer, nullptr);
}

TEST_F(FsckTest, RepairOfAnOrphanIsARecordOnly) {
  AddSpec("/cdi/x.json", kKind, {std::string(kReleased) + "-gpu-0"});
  const Finding finding = Only("orphaned-spec");
  const auto decision = DecideRepair(finding, state_);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->kind, state::DecisionKind::kRepair);
  EXPECT_THAT(decision->changes, IsEmpty());
  EXPECT_THAT(decision->message, HasSubstr("/cdi/x.json"));
  EXPECT_EQ(std::get<SetAside>(finding.repair).file.path, "/cdi/x.json");
  // Its claim is back: the file may be needed.
  Put(PreparedClaim(kReleased, "released"));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(DecideRepair(finding, state_).status()));
}

TEST_F(FsckTest, AConflictIsAnErrorWhereSomebodyHoldsTheDevice) {
  AddSpec("/cdi/other.json", "nvidia.com/gpu", {"0", "1", "all"});
  const Finding warning = Only("conflicting-spec");
  EXPECT_FALSE(warning.shown.error);
  EXPECT_EQ(warning.shown.object, "file//cdi/static.json");
  EXPECT_THAT(warning.shown.message,
              AllOf(HasSubstr("/cdi/static.json"), HasSubstr("2 devices"),
                    HasSubstr("nvidia.com/gpu=0, nvidia.com/gpu=all")));
  specs_.files.pop_back();
  AddSpec("/cdi/twin.json", kKind, {std::string(kHeld) + "-gpu-0"});
  // It is defined, if twice: to prepare it again would not help.
  const Finding error = Only("conflicting-spec");
  EXPECT_TRUE(error.shown.error);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(error.repair));
}

TEST_F(FsckTest, AConflictBelowAnotherDefinitionIsAWarning) {
  AddSpec("/cdi/twin.json", kKind, {std::string(kHeld) + "-gpu-0"});
  AddSpec("/run/held.json", kKind, {std::string(kHeld) + "-gpu-0"});
  specs_.files.back().priority = 1;
  const Finding warning = Only("conflicting-spec");
  EXPECT_FALSE(warning.shown.error);
  EXPECT_THAT(warning.shown.message, HasSubstr("higher priority"));
}

TEST_F(FsckTest, ReportShowsTheFindings) {
  running_.registered.clear();
  const FsckReport report = ReportOf(Run(), 4);
  EXPECT_EQ(report.ledger_sequence, 4u);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "absent-driver");
}

}  // namespace
}  // namespace devmgr::fsck
