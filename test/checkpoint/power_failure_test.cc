// SPDX-License-Identifier: Apache-2.0
//
// The RocksDB store, and the power going off before any call to the disk.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "checkpoint/full_ledger.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Kind = DiskOperation::Kind;
using Data = Survival::Data;
using Names = Survival::Names;

struct Variant {
  const char* name;
  Survival survival;
};

/// From what POSIX allows at worst to what a killed process leaves.
constexpr Variant kVariants[] = {
    {"nothing unsynced is left", {Data::kLost, Names::kLost}},
    {"everything is left", {Data::kWhole, Names::kAll}},
    {"names are left, data is torn", {Data::kTorn, Names::kAll}},
    {"names are left, data is not", {Data::kLost, Names::kAll}},
    {"data is left, names are not", {Data::kWhole, Names::kLost}},
    {"some names are left, data is torn", {Data::kTorn, Names::kFirst}},
    {"names and lengths are left, data is not", {Data::kZeroed, Names::kAll}},
    {"names and lengths are left, data is torn", {Data::kHoled, Names::kAll}},
};

/// The state directory is two levels below the disk's folder, so that its own
/// name can be lost as well.
fs::path StateIn(const fs::path& folder) { return folder / "var" / "state"; }

/// A batch that no other one is like; big enough for four to fill a log.
state::Batch MakeUnique(std::uint64_t seq, int serial) {
  const PodUid uid{fmt::format("pod-{}", serial % 7)};
  state::PodRecord pod =
      state::MakePod(uid, uid.value, state::PodPhase::kWaiting);
  pod.first_seen_seq = seq;
  pod.message = fmt::format("serial {} ", serial) + std::string(8'000, 'x');
  return state::MakeBatch(seq, state::DecisionKind::kSeen, {state::Put(pod)});
}

/// What comes back after a power failure: read, opened, and written on. Real
/// syncs would take most of the time, so this is on a simulated disk too.
absl::StatusOr<StoreContents> Recover(const DiskImage& image) {
  const TempFolder folder;
  WriteImage(image, folder.path());
  const fs::path directory = StateIn(folder.path());
  const auto read = ReadStoppedStore(directory);
  const bool none = !fs::exists(directory / "format");
  SimulatedDisk disk(folder.path());
  DEVMGR_ASSIGN_OR_RETURN(
      const auto store,
      OpenRocksDbStoreOn({directory, {}}, LedgerOptions(disk.env())));
  StoreContents contents;
  DEVMGR_ASSIGN_OR_RETURN(contents.state, store->Load());
  DEVMGR_ASSIGN_OR_RETURN(contents.history, store->History(0));
  EXPECT_TRUE(none || (read.ok() && *read == contents)) << read.status();
  const state::Batch next = MakeUnique(contents.state.seq + 1, -1);
  DEVMGR_RETURN_IF_ERROR(store->Append({&next, 1}));
  DEVMGR_ASSIGN_OR_RETURN(const state::State after, store->Reopen());
  state::State expected = contents.state;
  EXPECT_TRUE(state::Apply(expected, next).ok());
  EXPECT_TRUE(after == expected);
  return contents;
}

/// Recovers many images, equal ones once.
class Recoveries {
 public:
  const absl::StatusOr<StoreContents>& Of(const DiskImage& image) {
    std::size_t hash = 0;
    const auto mix = [&](std::string_view text) {
      hash = hash * 1'099'511'628'211u + std::hash<std::string_view>()(text);
    };
    for (const auto& [path, contents] : image) {
      mix(path);
      mix(contents.value_or("/"));
    }
    const auto [found, is_new] =
        known_.try_emplace(hash, absl::UnknownError("not yet"));
    if (is_new) found->second = Recover(image);
    return found->second;
  }
  std::size_t count() const { return known_.size(); }

 private:
  std::unordered_map<std::size_t, absl::StatusOr<StoreContents>> known_;
};

/// A store in use on a simulated disk. Before each call that changes the disk
/// it is looked at what would be left: all that was answered, and of what is
/// being written all or nothing.
class WatchedStore {
 public:
  /// `image` is on the disk, with these batches in it.
  explicit WatchedStore(const DiskImage& image = {},
                        std::vector<state::Batch> answered = {})
      : answered_(std::move(answered)) {
    WriteImage(image, folder_.path());
    disk_.emplace(folder_.path());
    disk_->SetHook([this](const DiskOperation& operation) {
      if (watching_ && operation.changes()) LookBefore(operation);
      return NextFault(operation);
    });
  }

  SimulatedDisk& disk() { return *disk_; }

  /// From now on, look before each call and after each answer.
  void StartWatching() { watching_ = true; }

  absl::Status TryOpen() {
    rocksdb::Options database = LedgerOptions(disk_->env());
    database.write_buffer_size = 64 * 1024;  // The least there can be.
    // In the two steps of a manager; Recover opens in one.
    auto store = OpenRocksDbStoreOn(
        {.directory = StateIn(folder_.path()), .pods_first = true}, database);
    if (!store.ok()) return store.status();
    DEVMGR_RETURN_IF_ERROR((*store)->Load().status());
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  void Open() {
    const absl::Status status = TryOpen();
    ASSERT_TRUE(status.ok()) << status;
  }
  void Close() { store_ = nullptr; }

  /// Writes `count` batches in one fold, and looks at what is left when it was
  /// answered. After a failure opens again and takes what is there.
  absl::Status Append(int count) {
    {
      std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) {
        in_flight_.push_back(
            MakeUnique(answered_.size() + in_flight_.size() + 1, ++serial_));
      }
    }
    const absl::Status status = store_->Append(in_flight_);
    if (status.ok()) Settle(true);
    if (watching_) Look("when it was answered");
    return status;
  }
  /// Returns whether the batches that were in doubt hold.
  bool Reopen() {
    const auto state = store_->Reopen();
    EXPECT_TRUE(state.ok()) << state.status();
    if (!state.ok()) return false;
    const bool adopted = state->seq > answered_.size();
    Settle(adopted);
    if (watching_) Look("when it was opened again");
    return adopted;
  }

  using Choice = std::function<bool(const DiskOperation&)>;

  /// The next call that is chosen fails.
  void FailNext(DiskFault fault, Choice chosen) {
    std::lock_guard lock(mutex_);
    fault_ = fault;
    chosen_ = std::move(chosen);
  }

  /// What would be left by now, in all variants.
  void Look(const std::string& when) {
    for (const Variant& variant : kVariants) Look(variant, when);
  }

  /// What was done, for the long form.
  std::string Summary() const {
    return fmt::format("{} calls, {} looks, {} different images, {} refused",
                       points_, looks_, recoveries_.count(), refused_);
  }

 private:
  void Settle(bool hold) {
    std::lock_guard lock(mutex_);
    if (hold) {
      answered_.insert(answered_.end(), in_flight_.begin(), in_flight_.end());
    }
    in_flight_.clear();
  }

  DiskFault NextFault(const DiskOperation& operation) {
    std::lock_guard lock(mutex_);
    if (fault_ == DiskFault::kNone || !chosen_(operation)) {
      return DiskFault::kNone;
    }
    return std::exchange(fault_, DiskFault::kNone);
  }

  void LookBefore(const DiskOperation& operation) {
    // With scale 1 each variant is looked at before one call out of eight.
    const std::uint64_t stride = std::max(1, 8 / TestScale());
    ++points_;
    for (std::size_t i = 0; i < std::size(kVariants); ++i) {
      if ((points_ + i) % stride != 0) continue;
      Look(kVariants[i],
           fmt::format("before call {}: {} '{}'", operation.number,
                       NameOf(operation.kind), operation.path));
    }
  }
  void Look(const Variant& variant, const std::string& when) {
    const DiskImage image = disk_->AfterPowerFailure(variant.survival);
    std::lock_guard lock(mutex_);
    SCOPED_TRACE(fmt::format("power failure {}, {} answered, {} in flight: {}",
                             when, answered_.size(), in_flight_.size(),
                             variant.name));
    ++looks_;
    const auto& recovered = recoveries_.Of(image);
    if (!recovered.ok() && variant.survival.data == Data::kHoled) {
      // Cannot be told from damage; FORMAT.md says which disks leave that.
      EXPECT_EQ(recovered.status().code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(MessageOf(recovered.status()), HasSubstr("state/db"));
      ++refused_;
      return;
    }
    ASSERT_TRUE(recovered.ok()) << recovered.status();
    std::vector<state::Batch> expected = answered_;
    if (recovered->state.seq != answered_.size()) {
      expected.insert(expected.end(), in_flight_.begin(), in_flight_.end());
    }
    EXPECT_EQ(Encoded(recovered->history), Encoded(expected));
    EXPECT_TRUE(recovered->state == Project(expected));
  }

  const TempFolder folder_;
  std::optional<SimulatedDisk> disk_;
  std::atomic<bool> watching_ = false;

  // Used by RocksDB's threads as well. Never held over a call to the disk.
  std::mutex mutex_;
  std::vector<state::Batch> answered_;
  std::vector<state::Batch> in_flight_;
  int serial_ = 0;
  DiskFault fault_ = DiskFault::kNone;
  Choice chosen_;
  Recoveries recoveries_;
  std::uint64_t points_ = 0;
  std::uint64_t looks_ = 0;
  std::uint64_t refused_ = 0;

  /// Last, because closing it writes too.
  std::unique_ptr<LedgerStore> store_;
};

auto OnLog(Kind kind) {
  return [kind](const DiskOperation& operation) {
    return operation.kind == kind && operation.path.ends_with(".log");
  };
}

void Say(const WatchedStore& store) {
  if (TestScale() > 1) fmt::print("{}\n", store.Summary());
}

TEST(PowerFailureTest, LosesNothingThatWasAnswered) {
  WatchedStore store;
  store.StartWatching();
  const int decisions = 8 + 4 * (TestScale() - 1);
  store.Open();
  for (int i = 0; i < decisions; ++i) ASSERT_TRUE(store.Append(1).ok());
  ASSERT_TRUE(store.Append(4).ok());
  store.Close();
  store.Open();
  for (int i = 0; i < decisions / 2; ++i) ASSERT_TRUE(store.Append(1).ok());
  store.Close();
  // The flow is what it is meant to be: several logs and tables.
  EXPECT_GT(store.disk().Count(Kind::kCreate, ".log"), 3u);
  EXPECT_GT(store.disk().Count(Kind::kCreate, ".sst"), 2u);
  EXPECT_GT(store.disk().Count(Kind::kDelete, ".log"), 0u);
  Say(store);
}

/// An opener that failed, or was killed, may leave names that are not synced.
TEST(PowerFailureTest, LosesNothingAfterAnOpeningThatFailed) {
  const int stride = std::max(1, 4 / TestScale());
  for (int failing = 1;; failing += stride) {
    SCOPED_TRACE(fmt::format("call {} fails", failing));
    int calls = 0;  // The store counts until it is gone.
    WatchedStore store;
    store.FailNext(DiskFault::kError, [&](const DiskOperation& operation) {
      return operation.changes() && ++calls == failing;
    });
    const absl::Status first = store.TryOpen();
    if (calls < failing) break;
    if (!first.ok()) store.Open();
    ASSERT_TRUE(store.Append(1).ok());
    store.Look("when it was answered");
  }
}

TEST(PowerFailureTest, LosesNothingWhileAnOlderFormatIsConverted) {
  const TempFolder folder;
  fs::create_directories(StateIn(folder.path()));
  MakeStore(StateIn(folder.path()), 1, GoldenRecords(1));
  const SimulatedDisk old(folder.path());
  WatchedStore store(old.AfterPowerFailure({}), FullLedgerOfFormat1());
  store.StartWatching();
  store.Open();
  ASSERT_TRUE(store.Append(1).ok());
  store.Close();
  Say(store);
}

/// A batch that is in the page cache only, after a sync that failed, holds once
/// the store was opened again, and lasts from then on.
TEST(PowerFailureTest, WhatWasAdoptedLasts) {
  WatchedStore store;
  store.Open();
  ASSERT_TRUE(store.Append(1).ok());
  store.StartWatching();
  store.FailNext(DiskFault::kError, OnLog(Kind::kSync));
  EXPECT_FALSE(store.Append(1).ok());
  EXPECT_TRUE(store.Reopen());
  ASSERT_TRUE(store.Append(1).ok());
  Say(store);
}

/// What was withdrawn does not come back, though parts of it may still be on
/// the disk, and another batch has its number.
TEST(PowerFailureTest, WhatWasWithdrawnStaysAway) {
  WatchedStore store;
  store.Open();
  ASSERT_TRUE(store.Append(1).ok());
  store.StartWatching();
  store.FailNext(DiskFault::kShortNoSpace, OnLog(Kind::kAppend));
  EXPECT_FALSE(store.Append(2).ok());
  EXPECT_FALSE(store.Reopen());
  ASSERT_TRUE(store.Append(1).ok());
  Say(store);
}

/// Opening what a power failure left writes, and the power may fail there too.
TEST(PowerFailureTest, LosesNothingInRecoveryEither) {
  std::vector<DiskImage> images;
  {
    int calls = 0;  // The store counts until it is gone.
    WatchedStore store;
    store.Open();
    store.disk().SetHook([&](const DiskOperation& operation) {
      const Variant& variant = kVariants[images.size() % 4];
      if (operation.changes() && ++calls % (4 + 20 / TestScale()) == 0) {
        images.push_back(store.disk().AfterPowerFailure(variant.survival));
      }
      return DiskFault::kNone;
    });
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(store.Append(1).ok());
    store.Close();
  }
  ASSERT_FALSE(images.empty());
  for (const DiskImage& image : images) {
    const auto recovered = Recover(image);
    ASSERT_TRUE(recovered.ok()) << recovered.status();
    WatchedStore store(image, recovered->history);
    store.StartWatching();
    store.Open();
    ASSERT_TRUE(store.Append(1).ok());
    store.Close();
    Say(store);
  }
}

}  // namespace
}  // namespace devmgr::checkpoint
