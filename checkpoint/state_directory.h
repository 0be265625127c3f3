// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "checkpoint/file_lock.h"

namespace devmgr::checkpoint {

/// A state directory that is locked for us: its lock file, its format file and
/// where its RocksDB is (FORMAT.md). The lock is a flock(2), so it goes with
/// this object or with the process, however that ends, and it also keeps out a
/// second opener in the same process. What must outlast a power failure is done
/// through the file system of the database.
class StateDirectory {
 public:
  /// Creates the directory if missing and locks it against everybody.
  /// A directory of a newer format is left untouched.
  ///   FailedPrecondition  somebody holds it, whom the message names; or its
  ///                       format is not ours
  ///   PermissionDenied    it is not ours to use
  ///   InvalidArgument     there is something that is no directory
  /// A format file that is damaged or missing is held all the same: see damage.
  static absl::StatusOr<StateDirectory> Hold(
      const std::filesystem::path& directory,
      std::shared_ptr<rocksdb::FileSystem> disk);

  /// Locks out whoever would write, without writing anything.
  ///   NotFound  there is no ledger
  ///   DataLoss  the format file is damaged or missing
  /// The other errors as Hold.
  static absl::StatusOr<StateDirectory> HoldForReading(
      const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }

  /// DataLoss when the format file is damaged, or missing beside a database.
  const absl::Status& damage() const { return damage_; }

  /// False for a directory in which no ledger was ever completed, and for one
  /// whose format file is damaged.
  bool has_ledger() const { return format_ != 0; }

  /// What the format file says; 0 when there is no ledger.
  std::uint64_t format() const { return format_; }

  /// Where the database is once `has_ledger`, and where a new one is made.
  std::filesystem::path database() const { return path_ / "db"; }
  std::filesystem::path new_database() const { return path_ / "db.new"; }

  /// Where a damaged database may be copied to; removed when it is in the way.
  std::filesystem::path salvage_work() const { return path_ / "db.salvage"; }

  /// Empties `new_database`, whatever was left there.
  absl::Status PrepareNewDatabase();

  /// Writes the format file: from here on the ledger exists and its database,
  /// complete in `new_database`, must not be missing.
  absl::Status CommitNewDatabase();

  /// Lets the format file say that format, once the database is of it.
  absl::Status SetFormat(std::uint64_t format);

  /// Moves a committed database into its place, unless it is there already, and
  /// makes all names last, also those that an earlier opener has left unsynced.
  ///   DataLoss  there is none
  absl::Status SettleDatabase();

  /// Puts the database that `write` makes in the place of the one that is
  /// there, which is kept, as are damaged files beside it, under names that end
  /// in `.damaged-` and the time. Returns where it is kept. A crash leaves one
  /// or the other in place.
  absl::StatusOr<std::filesystem::path> ReplaceDatabase(
      const std::function<absl::Status(const std::filesystem::path&)>& write,
      std::int64_t now_ms);

  /// Whether the path still leads to the directory that we hold.
  ///   Unavailable  it was removed, or another one is in its place
  absl::Status CheckInPlace() const;

  /// The database to read, in either place.
  ///   DataLoss  there is none
  absl::StatusOr<std::filesystem::path> FindDatabase() const;

 private:
  /// What there is in a directory that is locked.
  static absl::StatusOr<StateDirectory> Look(
      const std::filesystem::path& directory,
      std::shared_ptr<rocksdb::FileSystem> disk, FileLock lock);

  StateDirectory(std::filesystem::path path,
                 std::shared_ptr<rocksdb::FileSystem> disk, FileLock lock)
      : path_(std::move(path)),
        disk_(std::move(disk)),
        lock_(std::move(lock)) {}

  std::filesystem::path path_;
  std::shared_ptr<rocksdb::FileSystem> disk_;  ///< Null for a reader.
  FileLock lock_;
  std::uint64_t format_ = 0;  ///< 0: there is no ledger.
  absl::Status damage_;
};

}  // namespace devmgr::checkpoint
