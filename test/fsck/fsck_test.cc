// SPDX-License-Identifier: Apache-2.0
#include "fsck/fsck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claim/container_answer.h"
#include "claim/prepare_intent.h"
#include "common/status.h"

namespace devmgr::fsck {
namespace {

using state::DriverPhase;
using state::PodPhase;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kBoot[] = "boot-1";
constexpr char kDriver[] = "d.example.com";
constexpr char kKind[] = "d.example.com/claim";
/// Claims of the ledger, one released, one that nobody knows.
constexpr char kHeld[] = "11111111-0000-4000-8000-000000000001";
constexpr char kReleased[] = "22222222-0000-4000-8000-000000000002";
constexpr char kStranger[] = "33333333-0000-4000-8000-000000000003";

state::ClaimRecord PreparedClaim(const std::string& uid,
                                 const std::string& name) {
  state::ClaimRecord claim;
  claim.uid = {uid};
  claim.name = {"default", name};
  claim.pods = {{"pod-uid"}};
  claim.drivers[kDriver] = {
      DriverPhase::kPrepared,
      {{{"r"}, "pool", "gpu-0", {kKind + ("=" + uid) + "-gpu-0"}, ""}},
      kBoot};
  return claim;
}

/// Spec files of one directory, to be changed at will.
struct SpecFiles {
  struct Spec {
    std::string kind;
    std::vector<std::string> devices;
  };
  struct File {
    std::string path;
    Spec spec;
    std::string problem;
    int priority = 0;
  };
  std::vector<File> files;
  std::vector<std::string> unread;

  CdiRegistry Registry() const {
    std::vector<CdiSpecFile> made;
    for (const File& file : files) {
      made.push_back({file.path, file.priority, nullptr, file.problem});
      if (!file.problem.empty()) continue;
      auto spec = std::make_shared<CdiSpec>();
      spec->kind = file.spec.kind;
      for (const std::string& device : file.spec.devices) {
        spec->devices.push_back({device, {}, {}});
      }
      made.back().spec = std::move(spec);
    }
    return CdiRegistry(std::move(made), unread);
  }
};

/// A node with a Ready pod `default/p`, whose claim `default/held` is defined
/// in a spec file, and with a claim in its history that was released.
class FsckTest : public ::testing::Test {
 protected:
  FsckTest() {
    state_.seq = 4;
    Put(PreparedClaim(kHeld, "held"));
    state::PodRecord pod;
    pod.uid = {"pod-uid"};
    pod.name = {"default", "p"};
    pod.phase = PodPhase::kReady;
    pod.claims = {{kHeld}};
    pod.needs = {{"c", false, {{{kHeld}, "r", ""}}}};
    pod.boot_id = kBoot;
    pod.answer = *claim::AnswerFor(
        pod, [this](const ClaimUid& uid) { return state_.FindClaim(uid); });
    Put(pod);
    state::Batch batch;
    batch.seq = 3;
    batch.decision.changes.push_back(
        state::PutClaim{std::make_shared<state::ClaimRecord>(
            PreparedClaim(kReleased, "released"))});
    history_ = {batch};
    AddSpec("/cdi/held.json", kKind, {std::string(kHeld) + "-gpu-0"});
    AddSpec("/cdi/static.json", "nvidia.com/gpu",
            {"0", "all", "GPU-" + std::string(kStranger)});
    running_.registered = {kDriver};
    running_.source_pods = {{{"pod-uid"}}};
  }

  template <typename Record>
  void Put(Record record) {
    state_.Put(std::make_shared<const Record>(std::move(record)));
  }
  void AddSpec(const std::string& path, const std::string& kind,
               const std::vector<std::string>& devices) {
    specs_.files.push_back({path, {kind, devices}, "", 0});
  }
  state::ClaimRecord Held() { return *state_.FindClaim({kHeld}); }
  state::PodRecord Pod() { return *state_.FindPod({"pod-uid"}); }
  void PutAllIntoAnotherBoot() {
    state::ClaimRecord claim = Held();
    claim.drivers[kDriver].boot_id = "boot-0";
    Put(claim);
    state::PodRecord pod = Pod();
    pod.boot_id = "boot-0";
    Put(pod);
  }

  std::vector<Finding> Run() {
    const CdiRegistry specs = specs_.Registry();
    return RunChecks(
        {state_, kBoot, Past(), &specs, &running_, {"/etc/cdi", "/cdi"}});
  }
  PastDevices Past() const {
    PastDevices past;
    for (const state::Batch& batch : history_) past.Learn(batch);
    return past;
  }
  /// The only finding there is, of this check.
  Finding Only(const std::string& check) {
    const std::vector<Finding> findings = Run();
    EXPECT_THAT(findings, SizeIs(1)) << check;
    if (findings.size() != 1) return {};
    EXPECT_EQ(findings[0].shown.check, check);
    return findings[0];
  }

  state::State state_;
  std::vector<state::Batch> history_;
  SpecFiles specs_;
  RunningView running_;
};

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

constexpr char kTpu[] = "example.com/tpu";

/// The pod holds the TPUs 2 and 10 too, as one CDI device, and the plugin is
/// there.
class DeviceFsckTest : public FsckTest {
 protected:
  DeviceFsckTest() {
    state::PodRecord pod = Pod();
    state::DeviceHold hold;
    hold.container = "c";
    hold.resource = kTpu;
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{"2", {}}, {"10", {}}};
    hold.edits.cdi_devices = {"example.com/tpu=pair"};
    pod.holds = {hold};
    PutReady(pod);
    AddSpec("/cdi/tpu.json", kTpu, {"pair"});
    running_.plugins[kTpu] = {{"2", device::Health::kHealthy},
                              {"10", device::Health::kHealthy}};
  }

  /// With the answer that follows from what it holds.
  void PutReady(state::PodRecord pod) {
    pod.answer = *claim::AnswerFor(
        pod, [this](const ClaimUid& uid) { return state_.FindClaim(uid); });
    Put(pod);
  }
  void PutPhase(PodPhase phase) {
    state::PodRecord pod = Pod();
    pod.phase = phase;
    pod.answer = nullptr;
    Put(pod);
  }
};

TEST_F(DeviceFsckTest, FindsNothingOnAHealthyNode) {
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_THAT(RunChecks({state_, kBoot, Past(), nullptr, nullptr}), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsAnAnswerThatIsNotThatOfThePlugins) {
  state::PodRecord pod = Pod();
  pod.holds[0].edits.env = {{"TPUS", "2,10"}};
  Put(pod);
  EXPECT_EQ(Only("answer").shown.object, "pod/default/p");
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsHeldDevicesThatAreNotListedAnyMore) {
  running_.plugins[kTpu].clear();
  const Finding finding = Only("unlisted-device");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message,
              HasSubstr("2 devices of 'example.com/tpu' that its plugin does "
                        "not list any more: '2', '10'"));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
}

TEST_F(DeviceFsckTest, FindsPodsThatRunOnUnhealthyDevices) {
  running_.plugins[kTpu]["10"] = device::Health::kUnhealthy;
  const Finding finding = Only("unhealthy-device");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message, HasSubstr("calls unhealthy: '10'"));
}

TEST_F(DeviceFsckTest, FindsHardwareThatTwoPodsHold) {
  state::PodRecord pod = Pod();
  pod.holds[0].hardware.Add(device::PciIdentity("3b:00.0"));
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
  state::ForeignHolderRecord holder;
  holder.id.value = "0123456789abcdef";
  holder.cdi_devices = {"vendor.com/card=0"};
  holder.hardware.Add(device::PciIdentity("0000:3B:00.0"));
  state_.Put(std::make_shared<const state::ForeignHolderRecord>(holder));
  const Finding finding = Only("shared-hardware");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message,
              AllOf(HasSubstr("PCI address 0000:3b:00.0 by example.com/tpu"),
                    HasSubstr("foreign container 0123456789abc")));
}

TEST_F(DeviceFsckTest, FindsHardwareWithTwoNamesBeforeAPodAsks) {
  running_.overlaps = {
      {"UUID 1", {"d.example.com/pool/gpu-0", "example.com/tpu/2"}}};
  const Finding finding = Only("shared-hardware");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "hardware/UUID 1");
  EXPECT_THAT(finding.shown.message,
              HasSubstr("is offered as d.example.com/pool/gpu-0, "
                        "example.com/tpu/2"));
}

TEST_F(DeviceFsckTest, FindsPluginsThatAreAway) {
  running_.plugins.clear();
  const Finding finding = Only("absent-plugin");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "resource/example.com/tpu");
  EXPECT_THAT(finding.shown.message, HasSubstr("'default/p'"));
}

TEST_F(DeviceFsckTest, NobodyIsMissedWhoHoldsNothing) {
  auto resource = std::make_shared<state::ResourceRecord>();
  resource->name = "example.com/other";
  state_.Put(resource);
  EXPECT_THAT(Run(), IsEmpty());
}

// They are free in a moment, and no plugin is needed for that.
TEST_F(DeviceFsckTest, WhatAPodGivesUpIsNotLookedAt) {
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver].phase = DriverPhase::kUnpreparing;
  Put(claim);
  PutPhase(PodPhase::kReleasing);
  running_.plugins.clear();
  specs_.files.pop_back();
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, WhatIsOnlyReservedIsNotLookedAt) {
  state::PodRecord pod = Pod();
  pod.claims.clear();
  pod.holds[0].phase = device::ReservationPhase::kReserved;
  pod.holds[0].edits = {};
  Put(pod);
  PutPhase(PodPhase::kAllocating);
  state_.Erase(ClaimUid{kHeld});
  specs_.files.erase(specs_.files.begin());
  running_.plugins.clear();
  EXPECT_THAT(Run(), IsEmpty());
  // Of another pod than one that is being allocated for it is our bug.
  PutPhase(PodPhase::kAdmitted);
  EXPECT_THAT(Only("invariant").shown.message,
              HasSubstr("for which its plugin has not answered"));
}

TEST_F(DeviceFsckTest, FindsAMissingSpecOfAPluginsAnswer) {
  specs_.files.pop_back();
  const Finding finding = Only("missing-spec");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message, HasSubstr("example.com/tpu=pair"));
  EXPECT_EQ(finding.shown.repair, "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
  EXPECT_THAT(finding.shown.hint, HasSubstr("restart"));
}

TEST_F(DeviceFsckTest, MissesNoSpecOfAnAnswerOfAnotherBoot) {
  specs_.files.clear();
  PutAllIntoAnotherBoot();
  EXPECT_THAT(Run(), IsEmpty());
}

// A driver and a plugin of one vendor may share kinds, and specs.
TEST_F(DeviceFsckTest, TheSpecOfADeviceInUseIsNoOrphan) {
  AddSpec("/cdi/x.json", kKind, {std::string(kStranger) + "-gpu-0"});
  AddSpec("/cdi/y.json", kKind, {std::string(kReleased) + "-gpu-0"});
  EXPECT_THAT(Run(), SizeIs(2));
  state::PodRecord pod = Pod();
  pod.holds[0].edits.cdi_devices = {
      kKind + ("=" + std::string(kStranger)) + "-gpu-0",
      kKind + ("=" + std::string(kReleased)) + "-gpu-0"};
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsPodsThatTheSourceLostWhileTheyAreAllocatedFor) {
  state::PodRecord pod = Pod();
  pod.uid = {"late"};
  pod.name = {"default", "late"};
  pod.phase = PodPhase::kAllocating;
  pod.answer = nullptr;
  pod.claims.clear();
  pod.holds[0].phase = device::ReservationPhase::kReserved;
  pod.holds[0].devices = {{"3", {}}};
  Put(pod);
  EXPECT_EQ(Only("gone-pod").shown.object, "pod/default/late");
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
