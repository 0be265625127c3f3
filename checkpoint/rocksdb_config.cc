// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rocksdb_config.h"

#include <rocksdb/cache.h>
#include <rocksdb/table.h>

#include <cstdarg>
#include <cstddef>
#include <memory>
#include <string>

#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

/// With no logger at all, RocksDB writes LOG files.
class NullLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// RocksDB keeps no errno, only its text.
bool IsPermissionError(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  for (const int error : {EACCES, EPERM, EROFS}) {
    if (text.find(ErrnoText(error)) != std::string::npos) return true;
  }
  return false;
}

/// When RocksDB cannot open its file CURRENT it blames the options.
bool BlamesOptions(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return status.IsInvalidArgument() &&
         (text.find("Direct I/O is not supported") != std::string::npos ||
          text.find("options incompatible with filesystem") !=
              std::string::npos);
}

absl::StatusCode CodeOf(const rocksdb::Status& status) {
  if (status.IsIOError() || BlamesOptions(status)) {
    if (status.IsPathNotFound()) return absl::StatusCode::kDataLoss;
    return IsPermissionError(status) ? absl::StatusCode::kPermissionDenied
                                     : absl::StatusCode::kUnavailable;
  }
  switch (status.code()) {
    case rocksdb::Status::kCorruption:
    case rocksdb::Status::kNotFound:
    // What we ask for never changes, so what does not fit it is on the disk.
    case rocksdb::Status::kInvalidArgument:
      return absl::StatusCode::kDataLoss;
    case rocksdb::Status::kNotSupported:
      return absl::StatusCode::kFailedPrecondition;
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTimedOut:
    case rocksdb::Status::kTryAgain:
    case rocksdb::Status::kAborted:
    case rocksdb::Status::kIncomplete:
    case rocksdb::Status::kShutdownInProgress:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

void KeepSmall(rocksdb::Options& options) {
  options.write_buffer_size = 512 * kKiB;  // Bounds the WAL as well.
  options.arena_block_size = 32 * kKiB;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 2 * kMiB;
  options.target_file_size_base = 2 * kMiB;
  options.max_bytes_for_level_base = 8 * kMiB;
  options.max_manifest_file_size = kMiB;
  options.manifest_preallocation_size = 64 * kKiB;
  options.max_open_files = 64;
  options.max_file_opening_threads = 1;
  options.max_background_jobs = 1;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(256 * kKiB, /*num_shard_bits=*/0);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

void KeepQuiet(rocksdb::Options& options) {
  options.info_log = std::make_shared<NullLogger>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  // One writer: nothing to yield to, nothing to insert concurrently.
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;
}

void BeStrict(rocksdb::Options& options) {
  options.create_if_missing = false;
  options.paranoid_checks = true;
  // A record cut off at the end of the log was never answered and is dropped;
  // any other damage refuses to open. kAbsoluteConsistency would refuse after
  // every power failure in a write, and kPointInTimeRecovery would silently
  // drop answered records behind a damaged one.
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // What is recovered is written anew, with a sync. After a failed sync that
  // is what makes a record durable that is only in the page cache.
  options.avoid_flush_during_recovery = false;
  // No attempt to get over an error behind our back: the store is in doubt
  // until it is reopened. What RocksDB does not let us turn off is that it
  // tries a table again, every 5 s, for which there was no space.
  options.max_bgerror_resume_count = 0;
}

}  // namespace

rocksdb::Options LedgerOptions(rocksdb::Env* env) {
  rocksdb::Options options;
  if (env != nullptr) options.env = env;
  KeepSmall(options);
  KeepQuiet(options);
  BeStrict(options);
  return options;
}

rocksdb::WriteOptions DurableWrite() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

rocksdb::ReadOptions CheckedRead() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  return MakeStatus(
      CodeOf(status),
      fmt::format("{}: {}{}", what,
                  BlamesOptions(status) ? "CURRENT could not be opened: " : "",
                  status.ToString()));
}

}  // namespace devmgr::checkpoint
