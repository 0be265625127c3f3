// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rocksdb_store.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <variant>

#include "checkpoint/codec.h"
#include "checkpoint/history_window.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/state_directory.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Adds one change to a write; false when its record is null.
struct ChangeWriter {
  rocksdb::WriteBatch& write;

  bool operator()(const state::PutPod& change) const {
    return change.pod != nullptr &&
           Put(PodKey(change.pod->uid), EncodePod(*change.pod));
  }
  bool operator()(const state::ErasePod& change) const {
    return Delete(PodKey(change.uid));
  }
  bool operator()(const state::PutClaim& change) const {
    return change.claim != nullptr &&
           Put(ClaimKey(change.claim->uid), EncodeClaim(*change.claim));
  }
  bool operator()(const state::EraseClaim& change) const {
    return Delete(ClaimKey(change.uid));
  }
  bool operator()(const state::PutIdentity& change) const {
    return change.identity != nullptr &&
           Put(IdentityKeyOf(change.identity->kind, change.identity->name),
               EncodeIdentity(*change.identity));
  }
  bool operator()(const state::EraseIdentity& change) const {
    return Delete(IdentityKeyOf(change.kind, change.name));
  }

 private:
  bool Put(const std::string& key, const std::string& value) const {
    return write.Put(key, value).ok();
  }
  bool Delete(const std::string& key) const { return write.Delete(key).ok(); }
};

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(
    const rocksdb::Options& options, const fs::path& path) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path.string(), &db);
  std::unique_ptr<rocksdb::DB> owned(db);
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(
      status, fmt::format("cannot open the ledger in '{}'", path.string())));
  return owned;
}

/// An empty ledger, complete and on disk before the directory says so.
absl::Status CreateLedger(StateDirectory& directory, rocksdb::Options options) {
  DEVMGR_RETURN_IF_ERROR(directory.PrepareNewDatabase());
  options.create_if_missing = true;
  options.error_if_exists = true;
  {
    DEVMGR_ASSIGN_OR_RETURN(const auto db,
                            OpenDatabase(options, directory.new_database()));
    rocksdb::WriteBatch write;
    write.Put(FormatKey(), EncodeNumber(kFormatVersion));
    write.Put(SeqKey(), EncodeNumber(0));
    DEVMGR_RETURN_IF_ERROR(FromRocksDb(db->Write(DurableWrite(), &write),
                                       "cannot begin the ledger"));
    DEVMGR_RETURN_IF_ERROR(FromRocksDb(db->Close(), "cannot begin the ledger"));
  }
  return directory.CommitNewDatabase();
}

class RocksDbStore : public LedgerStore {
 public:
  RocksDbStore(StateDirectory directory, rocksdb::Options options,
               HistoryLimits limits)
      : directory_(std::move(directory)),
        options_(std::move(options)),
        window_(limits) {}

  absl::Status Open() {
    std::unique_lock lock(db_mutex_);
    DEVMGR_ASSIGN_OR_RETURN(db_, OpenDatabase(options_, directory_.database()));
    DEVMGR_RETURN_IF_ERROR(WithContext(ReadBounds(), "ledger in '{}'",
                                       directory_.database().string()));
    DEVMGR_RETURN_IF_ERROR(RaiseFormat());
    in_doubt_ = false;
    return absl::OkStatus();
  }

  absl::StatusOr<state::State> Load() override {
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    auto state = ReadState(*db_);
    if (state.ok()) return state;
    return WithContext(state.status(), "ledger in '{}'",
                       directory_.database().string());
  }

  absl::Status Append(std::span<const state::Batch> batches) override {
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    if (batches.empty()) return absl::OkStatus();
    const absl::Status status = Write(batches);
    if (!status.ok()) in_doubt_ = true;
    return WithContext(status, "cannot write batches {} to {} of the ledger",
                       batches.front().seq, batches.back().seq);
  }

  absl::StatusOr<state::State> Reopen() override {
    {
      std::unique_lock lock(db_mutex_);
      in_doubt_ = true;
      // An error in closing is the one that put the store in doubt.
      if (db_ != nullptr) db_->Close().PermitUncheckedError();
      db_ = nullptr;
    }
    DEVMGR_RETURN_IF_ERROR(Open());
    auto state = Load();
    if (!state.ok()) in_doubt_ = true;
    return state;
  }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    std::shared_lock lock(db_mutex_);
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    return ReadHistory(*db_, after, most);
  }

 private:
  absl::Status CheckUsable() const {
    if (!in_doubt_) return absl::OkStatus();
    return UnavailableError(
        "the ledger in '{}' is in doubt after a failed write",
        directory_.database().string());
  }

  /// What Append needs to know of the database.
  absl::Status ReadBounds() {
    DEVMGR_ASSIGN_OR_RETURN(last_seq_, ReadSeq(*db_));
    window_.Clear();
    oldest_stored_ = last_seq_ + 1;
    std::uint64_t last_in_history = 0;
    const auto add = [&](std::uint64_t seq, std::string_view bytes) {
      last_in_history = seq;
      oldest_stored_ = std::min(oldest_stored_, seq);
      window_.Add(seq, bytes.size());
      return absl::OkStatus();
    };
    DEVMGR_RETURN_IF_ERROR(VisitHistory(*db_, 0, kWholeHistory, add));
    if (last_in_history == 0) return absl::OkStatus();
    return CheckHistoryEnd(last_in_history, last_seq_);
  }

  /// Converts a ledger of an older format. Its records are valid in this one
  /// too, so that only the numbers change: that of the database first, for a
  /// crash in between must not leave a directory that says more than is there.
  absl::Status RaiseFormat() {
    DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t format, ReadFormat(*db_));
    if (format < kFormatVersion) {
      rocksdb::WriteBatch write;
      write.Put(FormatKey(), EncodeNumber(kFormatVersion));
      DEVMGR_RETURN_IF_ERROR(FromRocksDb(
          db_->Write(DurableWrite(), &write),
          fmt::format("cannot convert the ledger in '{}' to format {}",
                      directory_.database().string(), kFormatVersion)));
    }
    return directory_.RaiseFormat();
  }

  absl::Status Write(std::span<const state::Batch> batches) {
    rocksdb::WriteBatch write;
    std::uint64_t seq = last_seq_;
    for (const state::Batch& batch : batches) {
      if (batch.seq != ++seq) {
        return InternalError("batch {} stands in the place of {}", batch.seq,
                             seq);
      }
      for (const state::Change& change : batch.decision.changes) {
        if (!std::visit(ChangeWriter{write}, change)) {
          return InternalError("batch {} has a change without a record", seq);
        }
      }
      const std::string bytes = EncodeBatch(batch);
      write.Put(HistoryKey(seq), bytes);
      window_.Add(seq, bytes.size());
    }
    for (; oldest_stored_ < window_.first(); ++oldest_stored_) {
      write.Delete(HistoryKey(oldest_stored_));
    }
    write.Put(SeqKey(), EncodeNumber(seq));
    DEVMGR_RETURN_IF_ERROR(
        FromRocksDb(db_->Write(DurableWrite(), &write), "write failed"));
    last_seq_ = seq;
    return absl::OkStatus();
  }

  // Gives up the lock last.
  StateDirectory directory_;
  const rocksdb::Options options_;

  /// Held shared by History, which any thread may call, and exclusively to
  /// open and close. The one thread that does those may use `db_` without it.
  std::shared_mutex db_mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> in_doubt_ = true;

  // For Append; read anew whenever the database is opened.
  std::uint64_t last_seq_ = 0;
  /// Before the window when the limits have become smaller.
  std::uint64_t oldest_stored_ = 1;
  HistoryWindow window_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStoreOn(
    const RocksDbStoreOptions& options, const rocksdb::Options& database) {
  DEVMGR_ASSIGN_OR_RETURN(
      StateDirectory directory,
      StateDirectory::Hold(options.directory, database.env->GetFileSystem()));
  if (!directory.has_ledger()) {
    DEVMGR_RETURN_IF_ERROR(CreateLedger(directory, database));
  }
  DEVMGR_RETURN_IF_ERROR(directory.SettleDatabase());
  auto store = std::make_unique<RocksDbStore>(std::move(directory), database,
                                              options.history);
  DEVMGR_RETURN_IF_ERROR(store->Open());
  return store;
}

absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStore(
    const RocksDbStoreOptions& options) {
  return OpenRocksDbStoreOn(options, LedgerOptions(nullptr));
}

}  // namespace devmgr::checkpoint
