// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/ledger_store.h"
#include "claim/container_answer.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A stopped store with a Ready pod, whose device `example.com/gpu=gpu-0` a
/// spec file defines.
class StoppedStoreFsckTest : public ::testing::Test {
 protected:
  StoppedStoreFsckTest() {
    request_.boot_id = state::kBoot;
    request_.cdi_spec_dirs = {cdi_};
    WriteSpec("gpu.json", "gpu-0");
    Append(state::PreparedPodBatches());
  }

  std::unique_ptr<checkpoint::LedgerStore> OpenStore() {
    auto store = checkpoint::OpenRocksDbStore({state_dir_, {}});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  void Append(const std::vector<state::Batch>& batches) {
    const auto store = OpenStore();
    EXPECT_TRUE(store->Load().ok());
    EXPECT_TRUE(store->Append(batches).ok());
  }

  std::filesystem::path WriteSpec(const std::string& file,
                                  const std::string& device) {
    std::filesystem::create_directories(cdi_);
    std::ofstream(cdi_ / file) << "cdiVersion: 0.5.0\nkind: example.com/gpu\n"
                               << "devices: [{name: " << device
                               << ", containerEdits: {env: [A=1]}}]\n";
    return cdi_ / file;
  }

  absl::StatusOr<FsckReport> TryFsck(FsckMode mode) {
    auto inspector = Inspector::OpenStateDir(state_dir_);
    EXPECT_TRUE(inspector.ok()) << inspector.status();
    request_.mode = mode;
    return (*inspector)->Fsck(request_);
  }
  FsckReport Fsck(FsckMode mode = FsckMode::kCheck) {
    const auto report = TryFsck(mode);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : FsckReport();
  }
  checkpoint::StoreContents Contents() {
    auto contents = checkpoint::ReadStoppedStore(state_dir_);
    EXPECT_TRUE(contents.ok()) << contents.status();
    return *std::move(contents);
  }

  TempFolder folder_;
  const std::filesystem::path state_dir_ = folder_.path() / "state";
  const std::filesystem::path cdi_ = folder_.path() / "cdi";
  FsckRequest request_;
};

TEST_F(StoppedStoreFsckTest, FindsNothingWhereNothingIsWrong) {
  const FsckReport report = Fsck();
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.ledger_sequence, 4u);
}

TEST_F(StoppedStoreFsckTest, MissingSpecIsPreparedAgainByTheNextDaemon) {
  std::filesystem::remove(cdi_ / "gpu.json");
  ASSERT_THAT(Fsck().findings, SizeIs(1));
  EXPECT_EQ(Contents().state.seq, 4u);
  const FsckReport report = Fsck(FsckMode::kRepair);
  ASSERT_THAT(report.repairs, SizeIs(1));
  EXPECT_EQ(report.repairs[0].error, "");
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.ledger_sequence, 5u);
  const checkpoint::StoreContents contents = Contents();
  EXPECT_EQ(contents.state.FindPod(state::kPodA)->phase,
            state::PodPhase::kPreparing);
  const state::DriverRecord& driver =
      contents.state.FindClaim(state::kGpu)->drivers.at(state::kDriver);
  EXPECT_EQ(driver.phase, state::DriverPhase::kPreparing);
  EXPECT_THAT(driver.devices, IsEmpty());
  // It may still have it.
  EXPECT_THAT(driver.void_cdi_device_ids, ElementsAre("example.com/gpu=gpu-0"));
  const state::Batch& repair = contents.history.back();
  EXPECT_EQ(repair.decision.kind, state::DecisionKind::kRepair);
  EXPECT_THAT(repair.decision.message, HasSubstr("example.com/gpu=gpu-0"));
  EXPECT_GT(repair.time_ms, 1'700'000'000'000);
}

TEST_F(StoppedStoreFsckTest, OrphanIsSetAside) {
  state::ClaimRecord claim =
      state::MakeClaim(state::DriverPhase::kPrepared, {state::kPodA});
  claim.drivers[state::kDriver].devices[0].cdi_device_ids = {
      "example.com/gpu=claim-gpu-0"};
  std::vector<state::Batch> end = state::ReleasedPodBatches();
  end[0].decision.changes.insert(end[0].decision.changes.begin(),
                                 state::Put(claim));
  Append(end);
  const auto file = WriteSpec("orphan.json", "claim-gpu-0");
  const FsckReport report = Fsck(FsckMode::kRepair);
  ASSERT_THAT(report.repairs, SizeIs(1));
  EXPECT_EQ(report.repairs[0].error, "");
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(file.string() + ".orphaned"));
  EXPECT_TRUE(std::filesystem::exists(cdi_ / "gpu.json"));
  EXPECT_EQ(Contents().history.back().decision.kind,
            state::DecisionKind::kRepair);
}

TEST_F(StoppedStoreFsckTest, InAnotherBootNothingIsMissed) {
  std::filesystem::remove(cdi_ / "gpu.json");
  request_.boot_id = "boot-2";
  EXPECT_THAT(Fsck().findings, IsEmpty());
  request_.boot_id = "";  // the kernel's, which is another one too
  EXPECT_THAT(Fsck().findings, IsEmpty());
}

TEST_F(StoppedStoreFsckTest, NobodyRepairsWhatIsInUse) {
  auto inspector = Inspector::OpenStateDir(state_dir_);
  ASSERT_TRUE(inspector.ok());
  const auto store = OpenStore();
  request_.mode = FsckMode::kRepair;
  EXPECT_TRUE(
      absl::IsFailedPrecondition((*inspector)->Fsck(request_).status()));
}

/// The same, and pod `default/b`, Ready with a TPU of a plugin as
/// `example.com/tpu=0`.
class StoppedStoreDeviceFsckTest : public StoppedStoreFsckTest {
 protected:
  StoppedStoreDeviceFsckTest() {
    std::ofstream(cdi_ / "tpu.json")
        << "cdiVersion: 0.5.0\n"
           "kind: example.com/tpu\n"
           "devices: [{name: \"0\", containerEdits: "
           "{env: [A=1]}}]\n";
    Append({state::MakeBatch(5, state::DecisionKind::kAllocated,
                             {state::Put(PodB())})});
  }

  static state::PodRecord PodB() {
    state::PodRecord pod =
        state::MakePod(state::kPodB, "b", state::PodPhase::kAdmitted);
    pod.needs = {{"main", false, {}}};
    pod.holds = {state::MakeHold({"0"})};
    pod.answer = *claim::AnswerFor(pod, [](const auto&) { return nullptr; });
    pod.phase = state::PodPhase::kReady;
    pod.boot_id = state::kBoot;
    return pod;
  }
};

// No plugin is asked about: whether one is there only a daemon knows.
TEST_F(StoppedStoreDeviceFsckTest, FindsNothingWhereNothingIsWrong) {
  const FsckReport report = Fsck();
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.ledger_sequence, 5u);
}

TEST_F(StoppedStoreDeviceFsckTest, MissingSpecOfAPluginIsLeftToPeople) {
  std::filesystem::remove(cdi_ / "tpu.json");
  const FsckReport report = Fsck(FsckMode::kRepair);
  EXPECT_THAT(report.repairs, IsEmpty());
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "missing-spec");
  EXPECT_EQ(report.findings[0].object, "pod/default/b");
  EXPECT_EQ(report.ledger_sequence, 5u);
}

// The next daemon frees what this one had reserved when it was killed.
TEST_F(StoppedStoreDeviceFsckTest, WhatACrashLeftReservedIsNoFinding) {
  state::PodRecord pod =
      state::MakePod({"pod-c"}, "c", state::PodPhase::kAllocating);
  pod.holds = {state::MakeHold({"1"}, device::ReservationPhase::kReserved)};
  Append(
      {state::MakeBatch(6, state::DecisionKind::kReserve, {state::Put(pod)})});
  EXPECT_THAT(Fsck().findings, IsEmpty());
}

TEST_F(StoppedStoreDeviceFsckTest, FindsADeviceThatTwoPodsHold) {
  state::PodRecord pod =
      state::MakePod({"pod-c"}, "c", state::PodPhase::kAdmitted);
  pod.holds = {state::MakeHold({"0"})};
  Append({state::MakeBatch(6, state::DecisionKind::kAllocated,
                           {state::Put(pod)})});
  const FsckReport report = Fsck();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].check, "invariant");
  EXPECT_THAT(report.findings[0].message,
              HasSubstr("is held by the pods 'pod-b' and 'pod-c'"));
}

}  // namespace
}  // namespace devmgr
