// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rocksdb_config.h"

#include <rocksdb/cache.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <initializer_list>
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
bool Mentions(const rocksdb::Status& status,
              std::initializer_list<int> error_numbers) {
  const std::string text = status.ToString();
  return std::any_of(error_numbers.begin(), error_numbers.end(),
                     [&](int error) {
                       return text.find(ErrnoText(error)) != std::string::npos;
                     });
}

/// Errors of the disk reach us as damage, too, when RocksDB meets them in
/// opening a database. A disk that fails is not one that has lost something.
absl::StatusCode CodeOfDamage(const rocksdb::Status& status) {
  if (Mentions(status, {EACCES, EPERM, EROFS})) {
    return absl::StatusCode::kPermissionDenied;
  }
  return Mentions(status, {EIO, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM})
             ? absl::StatusCode::kUnavailable
             : absl::StatusCode::kDataLoss;
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
    return Mentions(status, {EACCES, EPERM, EROFS})
               ? absl::StatusCode::kPermissionDenied
               : absl::StatusCode::kUnavailable;
  }
  switch (status.code()) {
    case rocksdb::Status::kCorruption:
    case rocksdb::Status::kNotFound:
    // What we ask for never changes, so what does not fit it is on the disk.
    case rocksdb::Status::kInvalidArgument:
      return CodeOfDamage(status);
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
  options.write_buffer_size = 256 * kKiB;  // Bounds the WAL as well.
  options.arena_block_size = 32 * kKiB;
  options.writable_file_max_buffer_size = 16 * kKiB;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 2 * kMiB;
  options.target_file_size_base = 2 * kMiB;
  options.max_bytes_for_level_base = 8 * kMiB;
  options.max_manifest_file_size = kMiB;
  options.manifest_preallocation_size = 64 * kKiB;
  options.max_open_files = 64;
  options.table_cache_numshardbits = 0;
  options.max_file_opening_threads = 1;
  options.max_background_jobs = 1;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  // What FrameIsWhole reads.
  table.checksum = rocksdb::kCRC32c;
  table.format_version = 5;
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
  // Opened only after ExamineDatabase: all that it leaves unread at the end of
  // the log is the rest of a write that was never answered.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Checksums of whole tables, for the bytes that no block's covers, and for
  // tables that were put in the place of others.
  options.file_checksum_gen_factory =
      rocksdb::GetFileChecksumGenCrc32cFactory();
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

rocksdb::Status OpenTwice(const std::function<rocksdb::Status()>& open) {
  rocksdb::Status status = open();
  if (status.IsInvalidArgument() || status.IsCorruption()) status = open();
  return status;
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
