// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "checkpoint/ledger_store.h"
#include "common/status.h"
#include "support/read_all.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Names, contents and times of all that is below `folder`.
std::map<std::string, std::string> Fingerprint(
    const std::filesystem::path& folder) {
  std::map<std::string, std::string> result;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    struct stat file {};
    EXPECT_EQ(lstat(entry.path().c_str(), &file), 0);
    std::string& print = result[entry.path().string()];
    print = std::to_string(file.st_mode) + " " +
            std::to_string(file.st_mtim.tv_sec) + "." +
            std::to_string(file.st_mtim.tv_nsec) + " ";
    if (!entry.is_regular_file()) continue;
    print += ReadAll(entry.path());
  }
  return result;
}

class StateDirInspectorTest : public ::testing::Test {
 protected:
  std::unique_ptr<checkpoint::LedgerStore> OpenStore() {
    auto store = checkpoint::OpenRocksDbStore({directory_, {}});
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? *std::move(store) : nullptr;
  }

  /// A Ready pod with one prepared device, and a rejected one.
  void WriteLedger() {
    auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    ASSERT_TRUE(store->Load().ok());
    state::Batch ready = ReadyBatch();
    state::Batch rejected;
    rejected.seq = 2;
    rejected.time_ms = 2'000;
    rejected.decision.kind = state::DecisionKind::kReject;
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = {"u2"};
    pod->name = {"default", "bad"};
    pod->first_seen_seq = 2;
    pod->phase = state::PodPhase::kRejected;
    pod->reason = "InvalidPod";
    pod->message = "spec.containers: required value";
    rejected.decision.changes = {state::PutPod{pod}};
    const state::Batch batches[] = {ready, rejected};
    const absl::Status status = store->Append(batches);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  static state::Batch ReadyBatch() {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid = {"c1"};
    claim->name = {"default", "gpu-claim"};
    claim->pods = {PodUid{"u1"}};
    state::DriverRecord& driver = claim->drivers["gpu.example.com"];
    driver.phase = state::DriverPhase::kPrepared;
    driver.boot_id = "boot";
    driver.devices.resize(1);
    driver.devices[0].pool = "pool";
    driver.devices[0].device = "gpu-0";
    driver.devices[0].cdi_device_ids = {"example.com/gpu=c1"};

    auto answer = std::make_shared<PodDevices>();
    answer->name = {"default", "gpu-pod"};
    answer->uid = {"u1"};
    answer->containers.resize(1);
    answer->containers[0].name = "main";
    answer->containers[0].cdi_devices = {{"example.com/gpu=c1", {}}};
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = {"u1"};
    pod->name = {"default", "gpu-pod"};
    pod->first_seen_seq = 1;
    pod->phase = state::PodPhase::kReady;
    pod->claims = {claim->uid};
    pod->answer = answer;
    pod->boot_id = "boot";

    state::Batch batch;
    batch.seq = 1;
    batch.time_ms = 1'000;
    batch.decision.kind = state::DecisionKind::kPrepareResult;
    batch.decision.pods = {pod->name};
    batch.decision.changes = {state::PutClaim{claim}, state::PutPod{pod}};
    return batch;
  }

  TempFolder folder_;
  const std::filesystem::path directory_ = folder_.path() / "state";
};

TEST_F(StateDirInspectorTest, ShowsTheLedgerWithoutTouchingIt) {
  WriteLedger();
  const auto before = Fingerprint(folder_.path());
  auto opened = Inspector::OpenStateDir(directory_);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Inspector& inspector = **opened;

  const auto node = inspector.Node();
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->ledger_sequence, 2u);
  EXPECT_EQ(node->pods, 2);
  EXPECT_EQ(node->pods_ready, 1);
  EXPECT_EQ(node->pods_rejected, 1);
  EXPECT_EQ(node->claims, 1);
  EXPECT_EQ(node->state_dir, directory_.string());
  EXPECT_THAT(*inspector.Pods(), SizeIs(2));
  ASSERT_THAT(*inspector.Claims(), SizeIs(1));
  EXPECT_THAT(inspector.Claims()->front().pods, ElementsAre("default/gpu-pod"));
  ASSERT_THAT(*inspector.Devices(), SizeIs(1));
  EXPECT_EQ(inspector.Devices()->front().device, "gpu-0");
  EXPECT_THAT(*inspector.Plugins(), IsEmpty());
  EXPECT_THAT(*inspector.DeviceClasses(), IsEmpty());
  EXPECT_THAT(*inspector.History(0), SizeIs(2));
  EXPECT_THAT(*inspector.History(1), SizeIs(1));
  opened->reset();
  EXPECT_EQ(Fingerprint(folder_.path()), before);
}

TEST_F(StateDirInspectorTest, ResolvesReadyPodsOnly) {
  WriteLedger();
  auto inspector = Inspector::OpenStateDir(directory_);
  ASSERT_TRUE(inspector.ok()) << inspector.status().ToString();
  const auto answer = (*inspector)->Resolve({"default", "gpu-pod"});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  ASSERT_THAT(answer->containers, SizeIs(1));
  EXPECT_EQ(answer->containers[0].cdi_devices[0].name, "example.com/gpu=c1");

  const auto rejected = (*inspector)->Resolve({"default", "bad"});
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(rejected.status()),
              HasSubstr("Rejected: InvalidPod: spec.containers"));
  EXPECT_EQ((*inspector)->Resolve({"default", "x"}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ((*inspector)->FindPod({"other", "gpu-pod"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StateDirInspectorTest, TellsEarlierStates) {
  auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  state::State state;
  state::Batch ready = ReadyBatch();
  ASSERT_TRUE(state::ApplyNew(state, ready).ok());
  state::Batch gone;
  gone.seq = 2;
  gone.time_ms = 2'000;
  gone.decision.kind = state::DecisionKind::kRelease;
  gone.decision.changes = {state::EraseClaim{{"c1"}}, state::ErasePod{{"u1"}}};
  ASSERT_TRUE(state::ApplyNew(state, gone).ok());
  const state::Batch batches[] = {ready, gone};
  ASSERT_TRUE(store->Append(batches).ok());
  store.reset();

  auto inspector = Inspector::OpenStateDir(directory_);
  ASSERT_TRUE(inspector.ok()) << inspector.status().ToString();
  EXPECT_THAT((*inspector)->StateAt({})->pods, IsEmpty());
  const auto then = (*inspector)->StateAt(std::uint64_t{1});
  ASSERT_TRUE(then.ok()) << then.status().ToString();
  EXPECT_EQ(then->sequence, 1u);
  EXPECT_EQ(then->time.time_since_epoch(), std::chrono::seconds(1));
  ASSERT_THAT(then->pods, SizeIs(1));
  EXPECT_EQ(then->pods[0].state, PodState::kReady);
  ASSERT_THAT(then->devices, SizeIs(1));
  EXPECT_THAT(then->devices[0].used_by, ElementsAre("default/gpu-pod"));
  EXPECT_EQ((*inspector)
                ->StateAt(WallTime(std::chrono::milliseconds(1'999)))
                ->sequence,
            1u);
  EXPECT_EQ((*inspector)->StateAt(std::uint64_t{3}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(StateDirInspectorTest, WhatNeedsADaemonSaysSo) {
  WriteLedger();
  auto inspector = Inspector::OpenStateDir(directory_);
  ASSERT_TRUE(inspector.ok()) << inspector.status().ToString();
  const ObjectName pod{"default", "gpu-pod"};
  for (const absl::Status& status :
       {(*inspector)->PreparePod(pod), (*inspector)->ReleasePod(pod),
        (*inspector)->Events(0, std::chrono::milliseconds(0)).status(),
        (*inspector)
            ->WaitForChange(0, std::chrono::milliseconds(0))
            .status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(MessageOf(status), HasSubstr("needs a running daemon"));
  }
}

TEST_F(StateDirInspectorTest, RunningStoreIsRefused) {
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  const auto inspector = Inspector::OpenStateDir(directory_);
  EXPECT_EQ(inspector.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateDirInspectorTest, MissingLedgerIsNotFound) {
  EXPECT_EQ(Inspector::OpenStateDir(directory_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Inspector::OpenStateDir(folder_.path()).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace devmgr
