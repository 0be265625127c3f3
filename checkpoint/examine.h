// SPDX-License-Identifier: Apache-2.0
//
// Looking at a database before RocksDB may change it: RocksDB mends what it
// thinks it understands, without a word.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "checkpoint/witness.h"
#include "state/state.h"

namespace devmgr::checkpoint {

/// A database that is as it should be.
struct Examined {
  state::State state;
  RecoveryReport report;
  /// Of each batch in the history, the last of which is the ledger's last.
  std::vector<std::uint64_t> history_sizes;
  /// Open for reading, and holding on to what was examined.
  std::unique_ptr<rocksdb::DB> db;
};

/// A database whose files are as they should be. Of its records those of pods
/// are read, with the others still to come.
struct BegunExamination {
  state::State pods;  ///< And the number of the last batch.
  RecoveryReport report;
  std::string manifest;             ///< Its name.
  std::unique_ptr<rocksdb::DB> db;  ///< As above.
};

/// Checks every byte that counts, and changes none. `witness` tells how much
/// there must be.
///   DataLoss            what is damaged or missing; names the file
///   FailedPrecondition  the database is of another format
absl::StatusOr<Examined> ExamineDatabase(const std::filesystem::path& database,
                                         const rocksdb::Options& options,
                                         const std::optional<Witness>& witness);

/// The same in two steps: what pods were answered is known after the first.
/// The bytes of all files are compared with their checksums there, so that
/// DataLoss in the second step is a record that should not have been written,
/// or an error of the disk.
absl::StatusOr<BegunExamination> BeginToExamine(
    const std::filesystem::path& database, const rocksdb::Options& options,
    const std::optional<Witness>& witness);
absl::StatusOr<Examined> EndExamination(BegunExamination begun);

struct LogPath {
  std::uint64_t number = 0;
  std::filesystem::path path;
};
/// The write-ahead logs of a database, oldest first.
absl::StatusOr<std::vector<LogPath>> FindLogs(
    rocksdb::FileSystem& disk, const std::filesystem::path& database);

/// The number of the first write of a log's record, and how many it holds, as
/// RocksDB counts them; nothing when the record is too short.
struct WriteNumbers {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
};
std::optional<WriteNumbers> WriteNumbersOf(std::string_view record);

}  // namespace devmgr::checkpoint
