// SPDX-License-Identifier: Apache-2.0
//
// The RocksDB store on a disk that fails, and what a decision costs there.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::HasSubstr;
using Kind = DiskOperation::Kind;

class FailingDiskTest : public ::testing::Test {
 protected:
  std::unique_ptr<LedgerStore> Open(HistoryLimits limits = {}) {
    auto store = OpenRocksDbStoreOn({folder_.path(), limits},
                                    LedgerOptions(disk_.env()));
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  absl::Status Append(LedgerStore& store, std::uint64_t seq) {
    const state::Batch batch = WorkloadBatch(seq);
    return store.Append({&batch, 1});
  }
  void ExpectInDoubt(LedgerStore& store) {
    for (const absl::Status& status :
         {store.Load().status(), store.History(0).status(), Append(store, 3),
          store.Append({})}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(MessageOf(status), HasSubstr("in doubt"));
    }
  }
  /// From now on such calls fail on logs.
  void Fail(Kind kind, DiskFault fault) {
    disk_.SetHook([kind, fault](const DiskOperation& operation) {
      const bool fails =
          operation.kind == kind && operation.path.ends_with(".log");
      return fails ? fault : DiskFault::kNone;
    });
  }
  void Heal() { disk_.SetHook(nullptr); }

  /// Write 2 fails; afterwards the store holds `seq` batches.
  void TestFailedWrite(Kind kind, DiskFault fault, std::uint64_t seq) {
    const auto store = Open();
    ASSERT_TRUE(Append(*store, 1).ok());
    Fail(kind, fault);
    const absl::Status status = Append(*store, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr(ErrnoText(EIO)));
    ExpectInDoubt(*store);
    Heal();
    ExpectInDoubt(*store);
    const auto state = store->Reopen();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_TRUE(*state == WorkloadState(seq));
    EXPECT_EQ(store->History(0)->size(), seq);
    // Goes on, and it lasts.
    ASSERT_TRUE(Append(*store, seq + 1).ok());
    EXPECT_TRUE(*store->Reopen() == WorkloadState(seq + 1));
  }

  const TempFolder folder_;
  SimulatedDisk disk_{folder_.path()};
};

TEST_F(FailingDiskTest, AnAppendThatFailedIsNotThere) {
  TestFailedWrite(Kind::kAppend, DiskFault::kError, 1);
}

TEST_F(FailingDiskTest, AnAppendThatWasCutOffIsNotThere) {
  TestFailedWrite(Kind::kAppend, DiskFault::kShort, 1);
}

TEST_F(FailingDiskTest, AnAppendWhoseSyncFailedIsThere) {
  TestFailedWrite(Kind::kSync, DiskFault::kError, 2);
}

/// What was recovered after a failed sync may be in the page cache only, so it
/// has to be written again before anybody is told.
TEST_F(FailingDiskTest, ReopeningWritesWhatWasInDoubtAgain) {
  const auto store = Open();
  ASSERT_TRUE(Append(*store, 1).ok());
  const auto tables = DatabaseFiles(folder_.path(), ".sst");
  Fail(Kind::kSync, DiskFault::kError);
  EXPECT_FALSE(Append(*store, 2).ok());
  Heal();
  ASSERT_TRUE(store->Reopen().ok());
  EXPECT_GT(DatabaseFiles(folder_.path(), ".sst").size(), tables.size());
  EXPECT_TRUE(DatabaseFiles(folder_.path(), ".log").empty());
}

TEST_F(FailingDiskTest, StaysInDoubtUntilItCanBeReopened) {
  const auto store = Open();
  ASSERT_TRUE(Append(*store, 1).ok());
  Fail(Kind::kAppend, DiskFault::kError);
  EXPECT_FALSE(Append(*store, 2).ok());
  const auto current = folder_.path() / "db" / "CURRENT";
  const std::string contents = ReadFile(current);
  WriteFile(current, "nonsense");
  EXPECT_FALSE(store->Reopen().ok());
  ExpectInDoubt(*store);
  Heal();
  WriteFile(current, contents);
  ASSERT_TRUE(store->Reopen().ok());
  EXPECT_TRUE(*store->Load() == WorkloadState(1));
}

TEST_F(FailingDiskTest, StaysInDoubtWhenItCannotBeReadAgain) {
  std::uint64_t reads = 0;  // The store counts until it is gone.
  std::uint64_t failing = 0;
  const auto store = Open();
  ASSERT_TRUE(Append(*store, 1).ok());
  ASSERT_TRUE(store->Reopen().ok());
  disk_.SetHook([&](const DiskOperation& operation) {
    const bool fails = operation.kind == Kind::kRead && ++reads == failing;
    return fails ? DiskFault::kError : DiskFault::kNone;
  });
  ASSERT_TRUE(store->Reopen().ok());
  failing = std::exchange(reads, 0);  // The last one, which is Load's.
  ASSERT_FALSE(store->Reopen().ok());
  ExpectInDoubt(*store);
  EXPECT_TRUE(store->Reopen().ok());
}

/// Also by RocksDB, after we have looked at it: it says then that its options
/// do not fit, which would be damage to us.
TEST_F(FailingDiskTest, AFileThatCannotBeOpenedIsNotDamage) {
  Open().reset();
  for (int opened_before = 0; opened_before < 3; ++opened_before) {
    SCOPED_TRACE(opened_before);
    int opened = 0;
    disk_.SetHook([&](const DiskOperation& operation) {
      const bool fails = operation.kind == Kind::kOpen &&
                         operation.path.ends_with("CURRENT") &&
                         opened++ >= opened_before;
      return fails ? DiskFault::kError : DiskFault::kNone;
    });
    const absl::Status status =
        OpenRocksDbStoreOn({folder_.path(), {}}, LedgerOptions(disk_.env()))
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr("CURRENT"));
  }
}

TEST_F(FailingDiskTest, KeepsTheLockWhileInDoubt) {
  const auto store = Open();
  Fail(Kind::kAppend, DiskFault::kError);
  EXPECT_FALSE(Append(*store, 1).ok());
  const auto other = OpenRocksDbStore({folder_.path(), {}});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FailingDiskTest, WritesAllBatchesWithOneSync) {
  const auto store = Open();
  std::vector<state::Batch> batches;
  for (std::uint64_t seq = 1; seq <= 32; ++seq) {
    batches.push_back(WorkloadBatch(seq));
  }
  const std::uint64_t before = disk_.Count(Kind::kSync, ".log");
  ASSERT_TRUE(store->Append(batches).ok());
  EXPECT_EQ(disk_.Count(Kind::kSync, ".log") - before, 1u);
}

struct Cost {
  std::uint64_t bytes = 0, syncs = 0, reads = 0;
};

/// What one decision writes to the log of a store with `pods` pods in it.
class DecisionCost {
 public:
  DecisionCost() {
    auto store = OpenRocksDbStoreOn({folder_.path(), {.batches = 5}},
                                    LedgerOptions(disk_.env()));
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  Cost WithStored(int pods) {
    while (stored_ < pods) {
      std::vector<state::Change> changes;
      for (int i = 0; i < 1'000 && stored_ < pods; ++i) {
        changes.push_back(NextPod());
      }
      Append(std::move(changes));
    }
    const Cost before = SoFar();
    Append({NextPod()});
    const Cost after = SoFar();
    return {after.bytes - before.bytes, after.syncs - before.syncs,
            after.reads - before.reads};
  }

 private:
  Cost SoFar() const {
    return {disk_.BytesAppended(".log"), disk_.Count(Kind::kSync, ".log"),
            disk_.Count(Kind::kRead, ".sst")};
  }
  state::Change NextPod() {
    const std::string name = fmt::format("pod-{:08}", stored_++);
    return state::Put(
        state::MakePod(PodUid{name}, name, state::PodPhase::kReady));
  }
  void Append(std::vector<state::Change> changes) {
    const state::Batch batch = state::MakeBatch(
        ++seq_, state::DecisionKind::kPrepareResult, std::move(changes));
    const absl::Status status = store_->Append({&batch, 1});
    EXPECT_TRUE(status.ok()) << status;
  }

  const TempFolder folder_;
  SimulatedDisk disk_{folder_.path()};
  std::unique_ptr<LedgerStore> store_;
  std::uint64_t seq_ = 0;
  int stored_ = 0;
};

TEST(DecisionCostTest, IsTheSameHoweverMuchIsStored) {
  DecisionCost decisions;
  for (int i = 0; i < 6; ++i) decisions.WithStored(0);  // Fills the history.
  const Cost few = decisions.WithStored(10);
  const Cost many = decisions.WithStored(10'000);
  EXPECT_EQ(few.syncs, 1u);
  EXPECT_EQ(many.syncs, 1u);
  EXPECT_GT(few.bytes, 200u);
  // A log record that crosses a block of 32 KiB has a second header of 7
  // bytes, and the numbers in it may be a byte longer.
  EXPECT_NEAR(static_cast<double>(many.bytes), static_cast<double>(few.bytes),
              16);
  EXPECT_EQ(few.reads, 0u);
}

}  // namespace
}  // namespace devmgr::checkpoint
