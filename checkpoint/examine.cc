// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/examine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "checkpoint/byte_reader.h"
#include "checkpoint/codec.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/disk.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/log_file.h"
#include "checkpoint/manifest_file.h"
#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLogSuffix = ".log";
/// RocksDB's name for the checksums that LedgerOptions asks for.
constexpr std::string_view kTableChecksums = "FileChecksumCrc32c";

absl::StatusOr<std::string> ReadPresent(rocksdb::FileSystem& disk,
                                        const fs::path& path) {
  DEVMGR_ASSIGN_OR_RETURN(auto bytes, ReadFileIfAny(disk, path));
  if (bytes.has_value()) return *std::move(bytes);
  return DataLossError("'{}' is missing", path.string());
}

/// The file that CURRENT names.
absl::StatusOr<fs::path> FindManifest(rocksdb::FileSystem& disk,
                                      const fs::path& database) {
  const fs::path current = database / "CURRENT";
  DEVMGR_ASSIGN_OR_RETURN(const std::string text, ReadPresent(disk, current));
  constexpr std::string_view kPrefix = "MANIFEST-";
  const bool well_formed =
      text.starts_with(kPrefix) && text.size() > kPrefix.size() + 1 &&
      text.find_first_not_of("0123456789", kPrefix.size()) == text.size() - 1 &&
      text.back() == '\n';
  if (!well_formed) {
    return DataLossError("'{}' does not name a MANIFEST", current.string());
  }
  return database / text.substr(0, text.size() - 1);
}

/// What is in a log-format file that is not damaged.
absl::StatusOr<LogContents> CheckLogFile(rocksdb::FileSystem& disk,
                                         const fs::path& path,
                                         RecoveryReport* report) {
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes, ReadPresent(disk, path));
  LogContents log = ReadLog(bytes);
  if (!log.damage.empty()) {
    const LogDamage& damage = log.damage.front();
    return DataLossError("'{}' is damaged at offset {}: {}", path.string(),
                         damage.offset, damage.what);
  }
  if (log.torn.has_value()) {
    report->dropped.push_back(fmt::format(
        "{} bytes of an unfinished write at offset {} of '{}'", log.torn->bytes,
        log.torn->offset, path.filename().string()));
  }
  return log;
}

/// As RocksDB's generator of these checksums writes one.
std::string FileChecksum(std::uint32_t crc) {
  std::string checksum;
  for (const int shift : {24, 16, 8, 0}) {
    checksum.push_back(static_cast<char>(crc >> shift));
  }
  return checksum;
}

/// Compares a table with what the MANIFEST has of it. False: that is its size
/// only.
absl::StatusOr<bool> CheckTable(rocksdb::FileSystem& disk, const fs::path& path,
                                const TableEntry& entry) {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  DEVMGR_ASSIGN_OR_RETURN(
      const bool found, VisitFileIfAny(disk, path, [&](std::string_view piece) {
        size += piece.size();
        crc = ExtendCrc32c(crc, piece);
      }));
  if (!found) return DataLossError("'{}' is missing", path.string());
  if (size != entry.size) {
    return DataLossError("'{}' has {} bytes, not {}", path.string(), size,
                         entry.size);
  }
  if (entry.checksum.empty() || entry.checksum_kind != kTableChecksums) {
    return false;
  }
  if (FileChecksum(crc) == entry.checksum) return true;
  return DataLossError("'{}' is damaged: its checksum does not match",
                       path.string());
}

struct CheckedManifest {
  /// The first log that holds more than the tables do.
  std::uint64_t first_log = 0;
  /// The checksums of all tables were compared.
  bool all_tables = false;
};

/// The MANIFEST, and all tables that it names.
absl::StatusOr<CheckedManifest> CheckManifest(rocksdb::FileSystem& disk,
                                              const fs::path& manifest,
                                              RecoveryReport* report) {
  DEVMGR_ASSIGN_OR_RETURN(const LogContents log,
                          CheckLogFile(disk, manifest, report));
  if (log.records.empty()) {
    return DataLossError("'{}' holds nothing", manifest.string());
  }
  const auto contents = ReadManifest(log.records);
  if (!contents.has_value()) {  // Of a later RocksDB.
    return CheckedManifest{std::numeric_limits<std::uint64_t>::max(), false};
  }
  CheckedManifest checked{contents->first_log, true};
  for (const auto& [number, entry] : contents->tables) {
    DEVMGR_ASSIGN_OR_RETURN(
        const bool compared,
        CheckTable(disk, manifest.parent_path() / TableName(number), entry));
    checked.all_tables = checked.all_tables && compared;
  }
  return checked;
}

/// Each write goes on where the one before it ended, also from log to log, but
/// for those that are being removed. Returns the newest log.
absl::StatusOr<fs::path> CheckLogs(rocksdb::FileSystem& disk,
                                   const fs::path& database,
                                   std::uint64_t first_log,
                                   RecoveryReport* report) {
  DEVMGR_ASSIGN_OR_RETURN(const auto logs, FindLogs(disk, database));
  if (logs.empty()) {
    // One is made before the database is first written to, and there is always
    // one from then on.
    return DataLossError("'{}' has no log: its '*{}' file is missing",
                         database.string(), kLogSuffix);
  }
  std::uint64_t next = 0;
  for (const auto& [number, path] : logs) {
    DEVMGR_ASSIGN_OR_RETURN(const LogContents log,
                            CheckLogFile(disk, path, report));
    if (number < first_log) continue;
    for (const std::string& record : log.records) {
      const auto numbers = WriteNumbersOf(record);
      if (!numbers.has_value()) {
        return DataLossError("'{}' is damaged: a record has {} bytes",
                             path.string(), record.size());
      }
      if (numbers->count == 0) continue;
      if (next != 0 && numbers->first != next) {
        return DataLossError(
            "'{}' goes on with write {}, where {} was to follow: a log before "
            "it is missing or too short",
            path.string(), numbers->first, next);
      }
      next = numbers->first + numbers->count;
    }
  }
  return logs.back().path;
}

/// For reading; nothing is changed. Checks tables that were not.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenToRead(
    const rocksdb::Options& options, const fs::path& database,
    const fs::path& manifest, bool check_tables) {
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = OpenTwice([&] {
    return rocksdb::DB::OpenForReadOnly(options, database.string(), &raw);
  });
  std::unique_ptr<rocksdb::DB> db(raw);
  DEVMGR_RETURN_IF_ERROR(
      FromRocksDb(opened, fmt::format("cannot open it as '{}' has it",
                                      manifest.filename().string())));
  // Tables without a checksum of their own, from an older version.
  if (check_tables) {
    DEVMGR_RETURN_IF_ERROR(
        FromRocksDb(db->VerifyChecksum(CheckedRead()), "a table is damaged"));
  }
  return db;
}

/// Whether the witness has seen what a database that ends with `seq` has.
absl::Status CheckWitness(const std::optional<Witness>& witness,
                          std::uint64_t seq, const fs::path& newest,
                          RecoveryReport* report) {
  report->closed_cleanly =
      witness.has_value() && witness->closed && witness->seq == seq;
  if (!witness.has_value() || seq >= witness->seq) return absl::OkStatus();
  return DataLossError(
      "it ends with batch {}, but has held batch {}: '{}' was cut off, or "
      "files are missing or older ones have taken their place",
      seq, witness->seq, newest.string());
}

/// The first and the last batch of the history; 0 when there is none.
struct HistoryBounds {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// The same without what lies in between: a MANIFEST that lost its end at a
/// record's end names older tables, whose history ends elsewhere.
absl::Status LookAtBounds(rocksdb::DB& db, std::uint64_t seq) {
  const std::string begin = HistoryKey(0);
  const std::string end = HistoryEnd();
  const rocksdb::Slice lower(begin);
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options = CheckedRead();
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> batches(db.NewIterator(options));
  std::uint64_t ends[] = {0, 0};
  batches->SeekToFirst();
  for (std::uint64_t& found : ends) {
    if (batches->Valid()) {
      const auto number = HistorySeq(batches->key().ToStringView());
      if (!number.has_value()) return absl::OkStatus();  // ReadBounds says it.
      found = *number;
    }
    batches->SeekToLast();
  }
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(batches->status(), "reading the history"));
  return CheckHistoryBounds(db, ends[0], ends[1], seq);
}

/// Reads the history as far as it has to fit a ledger that ends with `seq`.
absl::StatusOr<HistoryBounds> ReadBounds(Examined& found, std::uint64_t seq) {
  HistoryBounds bounds;
  DEVMGR_RETURN_IF_ERROR(VisitHistory(
      *found.db, 0, kWholeHistory,
      [&](std::uint64_t number, std::string_view bytes) {
        if (bounds.first == 0) bounds.first = number;
        bounds.last = number;
        found.history_sizes.push_back(bytes.size());
        if (number != seq) return absl::OkStatus();
        const auto batch = DecodeBatch(bytes, PrintKey(HistoryKey(number)));
        if (batch.ok()) found.report.last_time_ms = batch->time_ms;
        return batch.status();
      }));
  return bounds;
}

/// When the last batch of the ledger was written; 0 when it is not kept.
absl::StatusOr<std::int64_t> TimeOf(rocksdb::DB& db, std::uint64_t seq) {
  if (seq == 0) return 0;
  DEVMGR_ASSIGN_OR_RETURN(const auto last, ReadHistory(db, seq - 1, 1));
  return last.empty() ? 0 : last.front().time_ms;
}

/// Reads the ledger, but for what `found` has of it, and looks at its history.
absl::Status ReadLedger(Examined& found) {
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t seq, ReadSeq(*found.db));
  found.report.last_batch = seq;
  absl::StatusOr<HistoryBounds> bounds;
  DEVMGR_ASSIGN_OR_RETURN(
      found.state, ReadState(
                       *found.db, [&] { bounds = ReadBounds(found, seq); },
                       std::move(found.state)));
  DEVMGR_RETURN_IF_ERROR(bounds.status());
  return CheckHistoryBounds(*found.db, bounds->first, bounds->last, seq);
}

struct CheckedFiles {
  RecoveryReport report;
  fs::path manifest;
  fs::path newest_log;
  std::unique_ptr<rocksdb::DB> db;
};

absl::StatusOr<CheckedFiles> CheckFiles(const fs::path& database,
                                        const rocksdb::Options& options) {
  CheckedFiles files;
  rocksdb::FileSystem& disk = *options.env->GetFileSystem();
  DEVMGR_ASSIGN_OR_RETURN(files.manifest, FindManifest(disk, database));
  const auto checked = CheckManifest(disk, files.manifest, &files.report);
  DEVMGR_RETURN_IF_ERROR(WithContext(checked.status(), "CURRENT names {}",
                                     files.manifest.filename().string()));
  DEVMGR_ASSIGN_OR_RETURN(
      files.newest_log,
      CheckLogs(disk, database, checked->first_log, &files.report));
  DEVMGR_ASSIGN_OR_RETURN(
      files.db,
      OpenToRead(options, database, files.manifest, !checked->all_tables));
  return files;
}

absl::StatusOr<Examined> Look(const fs::path& database,
                              const rocksdb::Options& options,
                              const std::optional<Witness>& witness) {
  DEVMGR_ASSIGN_OR_RETURN(CheckedFiles files, CheckFiles(database, options));
  Examined found;
  found.report = std::move(files.report);
  found.db = std::move(files.db);
  DEVMGR_RETURN_IF_ERROR(WithContext(ReadLedger(found), "as '{}' has it",
                                     files.manifest.filename().string()));
  DEVMGR_RETURN_IF_ERROR(
      CheckWitness(witness, found.state.seq, files.newest_log, &found.report));
  return found;
}

absl::StatusOr<BegunExamination> LookAtPods(
    const fs::path& database, const rocksdb::Options& options,
    const std::optional<Witness>& witness) {
  DEVMGR_ASSIGN_OR_RETURN(CheckedFiles files, CheckFiles(database, options));
  BegunExamination begun;
  begun.report = std::move(files.report);
  begun.manifest = files.manifest.filename().string();
  begun.db = std::move(files.db);
  auto pods = ReadPods(*begun.db);
  absl::Status status = pods.status();
  if (status.ok()) status = LookAtBounds(*begun.db, pods->seq);
  DEVMGR_RETURN_IF_ERROR(WithContext(status, "as '{}' has it", begun.manifest));
  begun.pods = *std::move(pods);
  begun.report.last_batch = begun.pods.seq;
  DEVMGR_RETURN_IF_ERROR(
      CheckWitness(witness, begun.pods.seq, files.newest_log, &begun.report));
  DEVMGR_ASSIGN_OR_RETURN(begun.report.last_time_ms,
                          TimeOf(*begun.db, begun.pods.seq));
  return begun;
}

}  // namespace

absl::StatusOr<std::vector<LogPath>> FindLogs(rocksdb::FileSystem& disk,
                                              const fs::path& database) {
  DEVMGR_ASSIGN_OR_RETURN(const auto names, NamesIn(disk, database));
  std::vector<LogPath> logs;
  for (const std::string& name : names) {
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits > 18 || name.substr(digits) != kLogSuffix) {
      continue;
    }
    logs.push_back({std::stoull(name), database / name});
  }
  std::sort(logs.begin(), logs.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return logs;
}

std::optional<WriteNumbers> WriteNumbersOf(std::string_view record) {
  ByteReader header(record);
  WriteNumbers numbers;
  numbers.first = header.Fixed(8);
  numbers.count = static_cast<std::uint32_t>(header.Fixed(4));
  if (!header.ok()) return std::nullopt;
  return numbers;
}

absl::StatusOr<Examined> ExamineDatabase(
    const fs::path& database, const rocksdb::Options& options,
    const std::optional<Witness>& witness) {
  auto found = Look(database, options, witness);
  // RocksDB loses some errors in reading, and misses what it has not read.
  // Damage is still there at a second look; a disk that fails says so to us.
  if (absl::IsDataLoss(found.status())) {
    found = Look(database, options, witness);
  }
  return found;
}

absl::StatusOr<BegunExamination> BeginToExamine(
    const fs::path& database, const rocksdb::Options& options,
    const std::optional<Witness>& witness) {
  auto begun = LookAtPods(database, options, witness);
  if (absl::IsDataLoss(begun.status())) {  // As above.
    begun = LookAtPods(database, options, witness);
  }
  return begun;
}

absl::StatusOr<Examined> EndExamination(BegunExamination begun) {
  Examined found;
  found.state = std::move(begun.pods);
  found.report = std::move(begun.report);
  found.db = std::move(begun.db);
  DEVMGR_RETURN_IF_ERROR(
      WithContext(ReadLedger(found), "as '{}' has it", begun.manifest));
  return found;
}

}  // namespace devmgr::checkpoint
