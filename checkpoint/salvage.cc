// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/salvage.h"

#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "checkpoint/codec.h"
#include "checkpoint/disk.h"
#include "checkpoint/examine.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/log_file.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/table_frame.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

using RawRecords = std::map<std::string, std::string>;

/// What could not be read: all are counted, the first ones named.
class SkipList {
 public:
  void Add(std::string what, std::uint64_t count = 1) {
    constexpr std::size_t kMostNames = 20;
    count_ += count;
    if (names_.size() < kMostNames) names_.push_back(std::move(what));
  }
  std::uint64_t count() const { return count_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<std::string> names_;
};

// ---- tables

using Iterator = std::unique_ptr<rocksdb::Iterator>;

/// A new one each time: once a block could not be read, an iterator may fail
/// at, or pass over, others as well.
Iterator SeekAnew(rocksdb::DB& db, const std::string& key) {
  Iterator records(db.NewIterator(CheckedRead()));
  records->Seek(key);
  return records;
}

/// An iterator on the first key behind what cannot be read, which begins behind
/// `last`; null when there is none. A seek fails just when it comes to lie in
/// there, so the end of that is found byte by byte.
Iterator SeekBehind(rocksdb::DB& db, const std::string& last) {
  constexpr std::size_t kFineEnough = 64;
  constexpr unsigned kBytes = 256;
  std::string before;  // Not behind it, nor is anything up to it.
  Iterator behind;
  while (before.size() < kFineEnough) {
    unsigned low = 0, high = kBytes;
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      const std::string key = before + static_cast<char>(middle);
      Iterator records = key > last ? SeekAnew(db, key) : nullptr;
      if (records != nullptr && records->status().ok()) {
        behind = std::move(records);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == 0 || (low == kBytes && before.empty())) break;
    before += static_cast<char>(low - 1);
  }
  return behind;
}

absl::Status ReadTables(rocksdb::DB& db, RawRecords& records,
                        SkipList& skipped) {
  std::string last;
  for (Iterator it = SeekAnew(db, ""); it != nullptr;
       it = SeekBehind(db, last)) {
    for (; it->Valid(); it->Next()) {
      last = it->key().ToString();
      records[last] = it->value().ToString();
    }
    const absl::Status status = FromRocksDb(
        it->status(), fmt::format("behind '{}' in a table", PrintKey(last)));
    if (!absl::IsDataLoss(status)) return status;
    skipped.Add(MessageOf(status));
  }
  return absl::OkStatus();
}

// ---- logs

class Replay : public rocksdb::WriteBatch::Handler {
 public:
  explicit Replay(RawRecords& records) : records_(records) {}
  void Put(const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    records_[key.ToString()] = value.ToString();
  }
  void Delete(const rocksdb::Slice& key) override {
    records_.erase(key.ToString());
  }

 private:
  RawRecords& records_;
};

/// Writes after `in_tables` of all logs.
absl::Status ReplayLogs(rocksdb::FileSystem& disk, const fs::path& database,
                        std::uint64_t in_tables, RawRecords& records,
                        SkipList& skipped) {
  DEVMGR_ASSIGN_OR_RETURN(const auto logs, FindLogs(disk, database));
  for (const auto& [number, path] : logs) {
    const std::string name = path.filename().string();
    DEVMGR_ASSIGN_OR_RETURN(const auto bytes, ReadFileIfAny(disk, path));
    LogContents log = ReadLog(bytes.value_or(""));
    for (const LogDamage& damage : log.damage) {
      skipped.Add(fmt::format("'{}' at offset {}: {}", name, damage.offset,
                              damage.what));
    }
    for (std::string& record : log.records) {
      const auto numbers = WriteNumbersOf(record);
      if (!numbers.has_value() || numbers->first <= in_tables) continue;
      rocksdb::WriteBatch write(std::move(record));
      Replay replay(records);
      const rocksdb::Status status = write.Iterate(&replay);
      if (!status.ok()) {
        skipped.Add(fmt::format("'{}': {}", name, status.ToString()));
      }
    }
  }
  return absl::OkStatus();
}

// ---- records

/// Puts a change without asking whether it fits.
struct ForcedChange {
  state::State& state;
  void operator()(const state::PutPod& change) const { state.Put(change.pod); }
  void operator()(const state::PutClaim& change) const {
    state.Put(change.claim);
  }
  void operator()(const state::PutIdentity& change) const {
    state.Put(change.identity);
  }
  void operator()(const state::PutResource& change) const {
    state.Put(change.resource);
  }
  void operator()(const state::ErasePod& change) const {
    state.Erase(change.uid);
  }
  void operator()(const state::EraseClaim& change) const {
    state.Erase(change.uid);
  }
  void operator()(const state::EraseIdentity& change) const {
    state.Erase(state::IdentityKey(change.kind, change.name));
  }
  void operator()(const state::EraseResource& change) const {
    state.Erase(change.name);
  }
  void operator()(const state::PutHealth& change) const {
    state.Put(change.health);
  }
  void operator()(const state::EraseHealth& change) const {
    state.Erase(change.device);
  }
  void operator()(const state::PutSource& change) const {
    state.Put(change.source);
  }
  void operator()(const state::EraseSource& change) const {
    state.Erase(change.source);
  }
  void operator()(const state::PutHolder& change) const {
    state.Put(change.holder);
  }
  void operator()(const state::EraseHolder& change) const {
    state.Erase(change.id);
  }
  void operator()(const state::PutLocalClaim& change) const {
    state.Put(change.claim);
  }
  void operator()(const state::EraseLocalClaim& change) const {
    state.Erase(change.uid);
  }
  void operator()(const state::PutAuthority& change) const {
    state.Put(change.authority);
  }
  void operator()(const state::EraseAuthority&) const {
    state.Erase(state::AuthorityKey{});
  }
};

/// The history holds each record once more: those that are missing from the
/// projection, and that no batch has erased since, come from there.
void RestoreFromHistory(const std::map<std::uint64_t, state::Batch>& history,
                        state::State& state) {
  state::State replayed;
  for (const auto& [seq, batch] : history) {
    for (const state::Change& change : batch.decision.changes) {
      std::visit(ForcedChange{replayed}, change);
    }
  }
  for (const auto& [uid, pod] : replayed.pods) {
    if (state.FindPod(uid) == nullptr) state.Put(pod);
  }
  for (const auto& [uid, claim] : replayed.claims) {
    if (state.FindClaim(uid) == nullptr) state.Put(claim);
  }
  for (const auto& [key, identity] : replayed.identities) {
    if (!state.identities.contains(key)) state.Put(identity);
  }
  for (const auto& [name, resource] : replayed.resources) {
    if (!state.resources.contains(name)) state.Put(resource);
  }
  for (const auto& [key, health] : replayed.healths) {
    if (!state.healths.contains(key)) state.Put(health);
  }
  for (const auto& [key, source] : replayed.sources) {
    if (!state.sources.contains(key)) state.Put(source);
  }
  for (const auto& [id, holder] : replayed.foreign_holders) {
    if (!state.foreign_holders.contains(id)) state.Put(holder);
  }
  for (const auto& [uid, claim] : replayed.local_claims) {
    if (!state.local_claims.contains(uid)) state.Put(claim);
  }
  if (state.FindAuthority() == nullptr) {
    for (const auto& [key, authority] : replayed.authority) {
      state.Put(authority);
    }
  }
}

/// The newest batches without a gap, if they end with `last`.
std::vector<state::Batch> UnbrokenEnd(
    std::map<std::uint64_t, state::Batch> history, std::uint64_t last) {
  std::vector<state::Batch> batches;
  for (auto node = history.extract(last); !node.empty();
       node = history.extract(last - batches.size())) {
    batches.push_back(std::move(node.mapped()));
  }
  std::reverse(batches.begin(), batches.end());
  return batches;
}

/// Decodes what can be decoded.
absl::StatusOr<Salvaged> Decode(const RawRecords& records, SkipList skipped,
                                std::uint64_t held_seq) {
  Salvaged found;
  std::map<std::uint64_t, state::Batch> history;
  std::uint64_t readable = 0;
  for (const auto& [key, value] : records) {
    if (key == FormatKey()) {
      const auto format = DecodeNumber(value);
      if (format.has_value() && *format > kFormatVersion) {
        return FailedPreconditionError(
            "the database has format {}, this version of devmgr knows format "
            "{}",
            *format, kFormatVersion);
      }
    } else if (key == SeqKey()) {
      found.last_seq =
          std::max(found.last_seq, DecodeNumber(value).value_or(0));
    } else if (const auto seq = HistorySeq(key)) {
      auto batch = DecodeBatch(value, PrintKey(key));
      if (!batch.ok() || batch->seq != *seq) {
        skipped.Add(batch.ok()
                        ? fmt::format("record '{}' is another's", PrintKey(key))
                        : MessageOf(batch.status()));
        continue;
      }
      history.emplace(*seq, *std::move(batch));
    } else if (KindOf(key) == KeyKind::kObject) {
      found.objects.emplace(key, value);
    } else if (const absl::Status status = PutRecord(key, value, found.state);
               !status.ok()) {
      skipped.Add(MessageOf(status));
      continue;
    }
    ++readable;
  }
  if (readable == 0) return DataLossError("nothing of it can be read");
  if (!history.empty()) {
    found.last_seq = std::max(found.last_seq, history.rbegin()->first);
    found.last_time_ms = history.rbegin()->second.time_ms;
  }
  if (found.last_seq < held_seq) {
    skipped.Add(fmt::format("batches {} to {}", found.last_seq + 1, held_seq),
                held_seq - found.last_seq);
    found.last_seq = held_seq;
  }
  RestoreFromHistory(history, found.state);
  for (const auto& [uid, pod] : found.state.pods) {
    found.last_seq = std::max(found.last_seq, pod->first_seen_seq);
  }
  found.state.seq = found.last_seq;
  found.history = UnbrokenEnd(std::move(history), found.last_seq);
  found.skipped = skipped.count();
  found.skipped_records = skipped.names();
  return found;
}

// ---- attempts

absl::Status RemoveWork(rocksdb::FileSystem& disk, const fs::path& work) {
  return IsDirectory(disk, work) ? RemoveDirectory(disk, work)
                                 : absl::OkStatus();
}

/// Everything but the logs, and tables that RocksDB must not even see. Nothing
/// of it has to last.
absl::Status CopyTables(rocksdb::FileSystem& disk, const fs::path& database,
                        const fs::path& work, SkipList& skipped) {
  DEVMGR_RETURN_IF_ERROR(RemoveWork(disk, work));
  DEVMGR_RETURN_IF_ERROR(
      FromRocksDb(disk.CreateDir(work.string(), {}, nullptr),
                  fmt::format("cannot make '{}'", work.string())));
  DEVMGR_ASSIGN_OR_RETURN(const auto names, NamesIn(disk, database));
  for (const std::string& name : names) {
    if (name.ends_with(".log") || IsDirectory(disk, database / name)) continue;
    DEVMGR_ASSIGN_OR_RETURN(const auto bytes,
                            ReadFileIfAny(disk, database / name));
    if (name.ends_with(".sst") && !FrameIsWhole(bytes.value_or(""))) {
      skipped.Add(fmt::format("all of '{}'", name));
      continue;
    }
    DEVMGR_RETURN_IF_ERROR(FromRocksDb(
        rocksdb::WriteStringToFile(&disk, bytes.value_or(""),
                                   (work / name).string()),
        fmt::format("cannot copy '{}'", (database / name).string())));
  }
  return absl::OkStatus();
}

/// Reads the tables as the MANIFEST has them or, with `repair`, all tables that
/// are there, and then the logs.
absl::StatusOr<Salvaged> Attempt(const fs::path& database, const fs::path& work,
                                 const rocksdb::Options& options, bool repair,
                                 std::uint64_t held_seq) {
  rocksdb::FileSystem& disk = *options.env->GetFileSystem();
  SkipList skipped;
  DEVMGR_RETURN_IF_ERROR(CopyTables(disk, database, work, skipped));
  if (repair) {
    // If that fails, the logs are what is left.
    rocksdb::RepairDB(work.string(), options).PermitUncheckedError();
  }
  RawRecords records;
  std::uint64_t in_tables = 0;
  rocksdb::DB* raw = nullptr;
  const absl::Status opened = FromRocksDb(OpenTwice([&] {
                                            return rocksdb::DB::OpenForReadOnly(
                                                options, work.string(), &raw);
                                          }),
                                          "all tables");
  const std::unique_ptr<rocksdb::DB> db(raw);
  if (opened.ok()) {
    in_tables = db->GetLatestSequenceNumber();
    DEVMGR_RETURN_IF_ERROR(ReadTables(*db, records, skipped));
  } else if (absl::IsDataLoss(opened)) {
    skipped.Add(MessageOf(opened));
  } else {
    return opened;
  }
  DEVMGR_RETURN_IF_ERROR(
      ReplayLogs(disk, database, in_tables, records, skipped));
  return Decode(records, std::move(skipped), held_seq);
}

/// How much of the ledger an attempt has found.
auto Worth(const Salvaged& salvaged) {
  const state::State& state = salvaged.state;
  return std::make_tuple(
      salvaged.history.empty() ? 0 : salvaged.history.back().seq,
      state.pods.size() + state.claims.size() + state.identities.size() +
          state.resources.size() + state.healths.size() + state.sources.size() +
          state.foreign_holders.size() + state.local_claims.size() +
          state.authority.size(),
      salvaged.objects.size());
}

}  // namespace

absl::StatusOr<Salvaged> SalvageDatabase(const fs::path& database,
                                         const fs::path& work,
                                         const rocksdb::Options& options,
                                         std::uint64_t held_seq) {
  auto best = Attempt(database, work, options, /*repair=*/false, held_seq);
  const bool complete =
      best.ok() && best->skipped == 0 &&
      (best->history.empty() ? best->last_seq == 0
                             : best->history.back().seq >= held_seq);
  if (!complete && (best.ok() || absl::IsDataLoss(best.status()))) {
    auto repaired = Attempt(database, work, options, /*repair=*/true, held_seq);
    if (!best.ok() || (repaired.ok() && Worth(*best) < Worth(*repaired))) {
      best = std::move(repaired);
    }
  }
  RemoveWork(*options.env->GetFileSystem(), work).IgnoreError();
  return best;
}

}  // namespace devmgr::checkpoint
