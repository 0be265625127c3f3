// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/object_space.h>
#include <devmgr/options.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::checkpoint {

/// How much history a store keeps; the older end is dropped.
struct HistoryLimits {
  std::uint64_t batches = 10'000;
  std::uint64_t bytes = 16 * 1024 * 1024;
};

inline constexpr auto kWholeHistory = std::numeric_limits<std::size_t>::max();

/// What was found when a store was opened.
struct RecoveryReport {
  /// Nothing was written after the store was last closed. True for a new one.
  bool closed_cleanly = true;
  std::uint64_t last_batch = 0;
  std::int64_t last_time_ms = 0;  ///< Unix time of that batch; 0: not known.

  /// Writes that were cut off before they were answered; one text for each.
  std::vector<std::string> dropped;

  // Only when a damaged store was recovered (Recovery::kLenient).
  std::string damage;          ///< Why it was refused; empty: it was not.
  std::filesystem::path kept;  ///< Where the damaged database is now.
  std::uint64_t skipped = 0;   ///< Records that could not be read.
  std::vector<std::string> skipped_records;  ///< The first of them.
  std::uint64_t mended = 0;  ///< Records changed so that all fit together.
};

/// One sentence for people.
std::string Describe(const RecoveryReport& report);

/// As it is shown.
RecoveryInfo RecoveryInfoOf(const RecoveryReport& report);

/// Where the ledger's batches are kept. One thread at a time, except History.
class LedgerStore {
 public:
  /// Closes the store and gives up its lock.
  virtual ~LedgerStore() = default;

  /// Of the projection only the pods, with the number of the last batch: what
  /// can be answered before Load has read the rest. Nothing when there is
  /// nothing to wait for.
  virtual std::optional<state::State> PodsFirst() const { return std::nullopt; }

  /// The projection of all batches on disk. Once it has failed after PodsFirst
  /// gave some, so does everything.
  ///   DataLoss            a record cannot be decoded; the message names it
  ///   FailedPrecondition  the format is newer; nothing was touched
  virtual absl::StatusOr<state::State> Load() = 0;

  /// Writes all batches atomically with one sync; durable when it returns OK.
  /// After an error the store is in doubt: it may or may not hold them, and
  /// every call but Reopen fails until Reopen has succeeded.
  virtual absl::Status Append(std::span<const state::Batch> batches) = 0;

  /// Closes and opens again, keeping the lock, and loads what is there.
  virtual absl::StatusOr<state::State> Reopen() = 0;

  /// Batches after `after` that the bounded history has, in order, `most` at
  /// most. May be called from any thread.
  virtual absl::StatusOr<std::vector<state::Batch>> History(
      std::uint64_t after, std::size_t most) = 0;
  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after) {
    return History(after, kWholeHistory);
  }

  /// Objects beside the ledger, for any thread; null: it keeps none. What is
  /// returned may outlive the store. It fails with Unavailable before
  /// OpenObjects, after CloseObjects, and while the store is in doubt.
  virtual std::shared_ptr<ObjectSpace> Objects() { return nullptr; }
  /// To be called once Load has succeeded. `failed` is called by a write or
  /// read of objects that needs a Reopen first, on its thread, until
  /// CloseObjects has returned: it must not block, nor call the store.
  virtual void OpenObjects(std::function<void(const absl::Status&)> failed) {
    (void)failed;
  }
  /// Whether objects wait for a Reopen. From any thread.
  virtual bool ObjectsFailed() const { return false; }
  /// Waits for calls that are under way.
  virtual void CloseObjects() {}

  /// Of opening it, not of reopening.
  virtual RecoveryReport Recovered() const { return {}; }
};

/// A store that forgets everything with its last user. Never fails.
std::unique_ptr<LedgerStore> NewInMemoryStore(HistoryLimits limits = {});

struct RocksDbStoreOptions {
  /// Created with mode 0700 if missing.
  std::filesystem::path directory;
  HistoryLimits history;
  Recovery recovery = Recovery::kStrict;
  /// Opening compares the bytes of all files with their checksums and reads the
  /// records of pods. Load does the rest: a record that cannot be decoded is
  /// found there, and the database is opened to write. Strict only.
  bool pods_first = false;
  /// Unix time; of the real clock when null.
  std::function<std::int64_t()> now_ms = nullptr;
};

/// The durable store (layout: checkpoint/FORMAT.md).
///   FailedPrecondition  held by another opener, whom the message names; or of
///                       a newer format, which stays untouched
///   PermissionDenied    the directory is not ours to use
///   DataLoss            present but damaged; the message names the file, and
///                       nothing was changed. With kLenient: nothing can be
///                       read at all.
absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStore(
    const RocksDbStoreOptions& options);

/// What a stopped store holds.
struct StoreContents {
  state::State state;
  std::vector<state::Batch> history;
  RecoveryReport report;
};

/// Reads a stopped or crashed store without changing a byte of it.
///   NotFound            there is no store in `directory`
///   FailedPrecondition  a running process holds it, or the format is newer
///   DataLoss            it is damaged
absl::StatusOr<StoreContents> ReadStoppedStore(
    const std::filesystem::path& directory);

}  // namespace devmgr::checkpoint
