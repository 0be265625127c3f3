// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rocksdb_store.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "checkpoint/codec.h"
#include "checkpoint/database_objects.h"
#include "checkpoint/examine.h"
#include "checkpoint/history_window.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/replace_damaged.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/state_directory.h"
#include "checkpoint/witness.h"
#include "checkpoint/write_ledger.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

/// An empty ledger, complete and on disk before the directory says so.
absl::Status CreateLedger(StateDirectory& directory,
                          const rocksdb::Options& options) {
  DEVMGR_RETURN_IF_ERROR(directory.PrepareNewDatabase());
  DEVMGR_RETURN_IF_ERROR(
      WriteNewLedger(options, directory.new_database(), {}, {}));
  return directory.CommitNewDatabase();
}

absl::Status WithAdvice(const absl::Status& damage) {
  return DataLossError(
      "{}; nothing was changed: restore the state directory, or open it with "
      "recovery 'lenient', which keeps the damaged database and goes on with "
      "what can be read of it",
      MessageOf(damage));
}

std::int64_t RealTimeMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class RocksDbStore : public LedgerStore {
 public:
  RocksDbStore(StateDirectory directory, rocksdb::Options options,
               HistoryLimits limits)
      : directory_(std::move(directory)),
        options_(std::move(options)),
        window_(limits) {}

  ~RocksDbStore() override {
    objects_->Close();
    if (in_doubt_ || !db_->Close().ok()) return;
    // Without it the next opener says that the store was not closed cleanly.
    WriteWitness(Disk(), directory_.path(), {last_seq_, /*closed=*/true})
        .IgnoreError();
  }

  /// Checks what is there, then opens it to write.
  absl::Status Open(bool pods_first) {
    DEVMGR_RETURN_IF_ERROR(directory_.damage());
    const bool is_new = !directory_.has_ledger();
    if (is_new) DEVMGR_RETURN_IF_ERROR(CreateLedger(directory_, options_));
    DEVMGR_ASSIGN_OR_RETURN(const auto witness,
                            ReadWitness(Disk(), directory_.path()));
    DEVMGR_ASSIGN_OR_RETURN(const fs::path found, directory_.FindDatabase());
    if (pods_first && !is_new) return Begin(found, witness);
    DEVMGR_ASSIGN_OR_RETURN(report_, Examine(found, witness));
    if (is_new) report_.closed_cleanly = true;
    DEVMGR_RETURN_IF_ERROR(directory_.SettleDatabase());
    DEVMGR_RETURN_IF_ERROR(OpenExamined());
    // Else what it says holds until something is written.
    return report_.closed_cleanly && !is_new ? absl::OkStatus() : MarkOpen();
  }

  /// Opens what can be read of a damaged ledger.
  absl::Status Recover(const absl::Status& damage, std::int64_t now_ms) {
    auto recovered = RecoverLedger(directory_, options_, damage, now_ms);
    if (!recovered.ok()) {
      return MakeStatus(
          recovered.status().code(),
          fmt::format("{}; it cannot be recovered: {}", MessageOf(damage),
                      MessageOf(recovered.status())));
    }
    DEVMGR_RETURN_IF_ERROR(Open(/*pods_first=*/false));
    RecoveryReport report = *std::move(recovered);
    report.closed_cleanly = false;
    report.last_batch = report_.last_batch;
    report.last_time_ms = report_.last_time_ms;
    report_ = std::move(report);
    return absl::OkStatus();
  }

  RecoveryReport Recovered() const override { return report_; }

  std::optional<state::State> PodsFirst() const override {
    if (!begun_.has_value()) return std::nullopt;
    return begun_->examination.pods;
  }

  absl::StatusOr<state::State> Load() override {
    if (begun_.has_value()) {
      not_loaded_ = Finish(*std::exchange(begun_, std::nullopt));
      if (absl::IsDataLoss(not_loaded_)) not_loaded_ = WithAdvice(not_loaded_);
    }
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    if (examined_.has_value()) {
      return *std::exchange(examined_, std::nullopt);
    }
    auto state = ReadState(*db_);
    if (state.ok()) return state;
    return WithContext(state.status(), "ledger in '{}'",
                       directory_.database().string());
  }

  absl::Status Append(std::span<const state::Batch> batches) override {
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    if (batches.empty()) return absl::OkStatus();
    examined_.reset();
    absl::Status status = MarkOpen();
    if (status.ok()) status = Write(batches);
    if (!status.ok()) in_doubt_ = true;
    return WithContext(status, "cannot write batches {} to {} of the ledger",
                       batches.front().seq, batches.back().seq);
  }

  absl::StatusOr<state::State> Reopen() override {
    DEVMGR_RETURN_IF_ERROR(not_loaded_);
    objects_->Suspend();
    {
      std::unique_lock lock(db_mutex_);
      in_doubt_ = true;
      // An error in closing is the one that put the store in doubt.
      if (db_ != nullptr) db_->Close().PermitUncheckedError();
      db_ = nullptr;
    }
    DEVMGR_RETURN_IF_ERROR(directory_.CheckInPlace());
    // What was answered must be there; it may be more.
    DEVMGR_RETURN_IF_ERROR(
        Examine(directory_.database(), Witness{last_seq_, false}).status());
    DEVMGR_RETURN_IF_ERROR(OpenExamined());
    auto state = Load();
    if (!state.ok()) in_doubt_ = true;
    if (state.ok() && objects_failed_ != nullptr) {
      objects_->Open(*db_, objects_failed_);
    }
    return state;
  }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    std::shared_lock lock(db_mutex_);
    DEVMGR_RETURN_IF_ERROR(CheckUsable());
    return ReadHistory(*db_, after, most);
  }

  std::shared_ptr<ObjectSpace> Objects() override { return objects_; }

  void OpenObjects(DatabaseObjects::Failed failed) override {
    objects_failed_ = std::move(failed);
    if (CheckUsable().ok()) objects_->Open(*db_, objects_failed_);
  }

  bool ObjectsFailed() const override { return objects_->failed(); }

  void CloseObjects() override {
    objects_failed_ = nullptr;
    objects_->Close();
  }

 private:
  /// What Load goes on with.
  struct Begun {
    fs::path database;
    std::optional<Witness> witness;
    BegunExamination examination;
  };

  /// Checks the files and reads the pods; nothing is changed.
  absl::Status Begin(const fs::path& database,
                     const std::optional<Witness>& witness) {
    auto begun = BeginToExamine(database, options_, witness);
    if (!begun.ok()) {
      return WithContext(begun.status(), "ledger in '{}'", database.string());
    }
    report_ = begun->report;
    begun_ = Begun{database, witness, *std::move(begun)};
    return absl::OkStatus();
  }

  /// Reads the other records, then opens the database to write.
  absl::Status Finish(Begun begun) {
    auto found = EndExamination(std::move(begun.examination));
    if (absl::IsDataLoss(found.status())) {  // A second look, as always.
      found = ExamineDatabase(begun.database, options_, begun.witness);
    }
    if (!found.ok()) {
      return WithContext(found.status(), "ledger in '{}'",
                         begun.database.string());
    }
    SetBounds(*found);
    examined_ = std::move(found->state);
    found->db.reset();
    DEVMGR_RETURN_IF_ERROR(directory_.SettleDatabase());
    DEVMGR_RETURN_IF_ERROR(OpenExamined());
    return report_.closed_cleanly ? absl::OkStatus() : MarkOpen();
  }

  absl::Status CheckUsable() const {
    DEVMGR_RETURN_IF_ERROR(not_loaded_);
    if (!in_doubt_) return absl::OkStatus();
    return UnavailableError(
        "the ledger in '{}' is in doubt after a failed write",
        directory_.database().string());
  }

  rocksdb::FileSystem& Disk() const { return *options_.env->GetFileSystem(); }

  absl::StatusOr<RecoveryReport> Examine(
      const fs::path& database, const std::optional<Witness>& witness) {
    auto found = ExamineDatabase(database, options_, witness);
    if (!found.ok()) {
      return WithContext(found.status(), "ledger in '{}'", database.string());
    }
    SetBounds(*found);
    examined_ = std::move(found->state);
    return std::move(found->report);
  }

  absl::Status OpenExamined() {
    std::unique_lock lock(db_mutex_);
    auto db = OpenDatabase(options_, directory_.database());
    if (absl::IsDataLoss(db.status())) return NotDamage(db.status());
    DEVMGR_RETURN_IF_ERROR(db.status());
    db_ = *std::move(db);
    DEVMGR_RETURN_IF_ERROR(RaiseFormat());
    in_doubt_ = false;
    return absl::OkStatus();
  }

  /// What RocksDB takes for damage just after all was found whole is a disk
  /// that fails; a second look tells how.
  absl::Status NotDamage(const absl::Status& status) const {
    DEVMGR_RETURN_IF_ERROR(
        ExamineDatabase(directory_.database(), options_, std::nullopt)
            .status());
    return UnavailableError("{}", MessageOf(status));
  }

  /// What Append needs to know of the database.
  void SetBounds(const Examined& found) {
    last_seq_ = found.state.seq;
    window_.Clear();
    oldest_stored_ = last_seq_ + 1 - found.history_sizes.size();
    std::uint64_t seq = oldest_stored_;
    for (const std::uint64_t size : found.history_sizes) {
      window_.Add(seq++, size);
    }
  }

  /// Converts a ledger of an older format. Its records are valid in this one
  /// too, so that only the numbers change: that of the database first, for a
  /// crash in between must not leave a directory that says more than is there.
  absl::Status RaiseFormat() {
    DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t format, ReadFormat(*db_));
    if (format < kFormatVersion) {
      rocksdb::WriteBatch write;
      write.Put(FormatKey(), EncodeNumber(kFormatVersion));
      write.Put(FirstKey(), EncodeNumber(oldest_stored_));
      DEVMGR_RETURN_IF_ERROR(FromRocksDb(
          db_->Write(DurableWrite(), &write),
          fmt::format("cannot convert the ledger in '{}' to format {}",
                      directory_.database().string(), kFormatVersion)));
    }
    return directory_.SetFormat(kFormatVersion);
  }

  /// From now on it has not been closed.
  absl::Status MarkOpen() {
    if (marked_open_) return absl::OkStatus();
    DEVMGR_RETURN_IF_ERROR(
        WriteWitness(Disk(), directory_.path(), {last_seq_, false}));
    marked_open_ = true;
    return absl::OkStatus();
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
        if (!AddChange(change, write)) {
          return InternalError("batch {} has a change without a record", seq);
        }
      }
      const std::string bytes = EncodeBatch(batch);
      write.Put(HistoryKey(seq), bytes);
      window_.Add(seq, bytes.size());
    }
    if (oldest_stored_ < window_.first()) {
      write.Put(FirstKey(), EncodeNumber(window_.first()));
    }
    for (; oldest_stored_ < window_.first(); ++oldest_stored_) {
      write.Delete(HistoryKey(oldest_stored_));
    }
    write.Put(SeqKey(), EncodeNumber(seq));
    DEVMGR_RETURN_IF_ERROR(
        FromRocksDb(db_->Write(DurableWrite(), &write), "write failed"));
    // Files that were removed can be written, but not be found again.
    DEVMGR_RETURN_IF_ERROR(directory_.CheckInPlace());
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
  bool marked_open_ = false;

  /// Of the same database; closed before it.
  const std::shared_ptr<DatabaseObjects> objects_ =
      std::make_shared<DatabaseObjects>(
          [this] { return directory_.CheckInPlace(); });
  /// Null: they are not open.
  DatabaseObjects::Failed objects_failed_;

  /// Until Load goes on with it.
  std::optional<Begun> begun_;
  /// Why it never will be; what PodsFirst gave is all that is known then.
  absl::Status not_loaded_;

  /// Until it is loaded.
  std::optional<state::State> examined_;
  RecoveryReport report_;

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
  auto store = std::make_unique<RocksDbStore>(std::move(directory), database,
                                              options.history);
  absl::Status status =
      store->Open(options.pods_first && options.recovery == Recovery::kStrict);
  if (absl::IsDataLoss(status)) {
    if (options.recovery == Recovery::kStrict) return WithAdvice(status);
    status = store->Recover(status,
                            options.now_ms ? options.now_ms() : RealTimeMs());
  }
  if (!status.ok()) return status;
  return store;
}

absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStore(
    const RocksDbStoreOptions& options) {
  return OpenRocksDbStoreOn(options, LedgerOptions(nullptr));
}

}  // namespace devmgr::checkpoint
