// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "common/executor.h"
#include "common/mutex.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::ledger {

/// When to try again what could not be written; the ledger reports itself that
/// it cannot be written.
inline constexpr std::chrono::milliseconds kWriteRetry{1'000};

/// The ledger thread: runs decisions one after the other on the working state,
/// folds all that queued up during the last sync into one write, then publishes
/// them, then completes their callers in order. So decisions never race, and
/// nothing is answered that is not on disk.
///
/// After a failed write the store is in doubt: it is opened again, and what is
/// on disk then tells whether the decisions hold (they are adopted) or not
/// (their callers get the error). While it cannot be opened, every decision
/// fails with Unavailable and tries again to open it.
/// Thread-safe.
class Ledger {
 public:
  /// Decides on the state that all decisions before this one lead to. Runs on
  /// the ledger thread. What is not worth writing is not written.
  using Decide =
      std::function<absl::StatusOr<state::Decision>(const state::State&)>;
  using Done = std::function<void(const absl::Status&)>;
  /// Durable batches in order; runs on the ledger thread before their Done.
  using Publish = std::function<void(const state::Batch&)>;

  /// Why a write failed or the store could not be opened again, each time; then
  /// OK, once, when decisions are taken again. Runs on the ledger thread.
  using OnHealth = std::function<void(const absl::Status&)>;

  /// Most decisions that one write may hold.
  static constexpr std::size_t kMaxFold = 256;

  /// `initial`, never null, is what `store` holds. The ledger thread copies it
  /// before the first decision: until then it must not change.
  /// `now_ms`: Unix time of new batches.
  /// The executor stands in for the ledger thread; null: a thread of its own.
  Ledger(std::unique_ptr<checkpoint::LedgerStore> store,
         const state::State* initial, std::function<std::int64_t()> now_ms,
         Publish publish, std::unique_ptr<Executor> executor = nullptr,
         OnHealth on_health = nullptr);
  ~Ledger();

  /// As LedgerStore::Load, for what `initial` lacks; before anything is
  /// submitted.
  absl::StatusOr<state::State> Load();

  /// As LedgerStore::Objects. They can be used from OpenObjects on, which comes
  /// after Load and before anything is submitted, until Stop.
  std::shared_ptr<ObjectSpace> Objects() const { return store_->Objects(); }
  void OpenObjects();

  /// Drains the queue and joins. What is submitted from now on is Cancelled at
  /// once.
  void Stop();

  /// The three forms without a result. A failed write is the ledger's problem,
  /// which it reports itself (OnHealth).
  void Submit(Decide decide);
  /// `done` runs on `executor`, which is borrowed and must outlive the ledger.
  void Submit(Decide decide, Executor& executor, Done done);
  /// `done` runs on the ledger thread: for what has to happen before the next
  /// decision.
  void Submit(Decide decide, Done done);

  /// What a decision comes to for its caller, apart from its changes.
  template <typename T>
  struct Decided {
    state::Decision decision;
    T result;
  };
  /// `decide` returns StatusOr<Decided<T>>; `done` gets the result once the
  /// decision is on disk, or why it is not, on `executor`.
  template <typename T, typename DecideWithResult>
  void Submit(DecideWithResult decide, Executor& executor,
              std::function<void(absl::StatusOr<T>)> done) {
    auto result = std::make_shared<std::optional<T>>();
    Submit(
        [decide = std::move(decide),
         result](const state::State& state) -> absl::StatusOr<state::Decision> {
          absl::StatusOr<Decided<T>> decided = decide(state);
          if (!decided.ok()) return decided.status();
          result->emplace(std::move(decided->result));
          return std::move(decided->decision);
        },
        executor,
        [done = std::move(done), result](const absl::Status& status) {
          if (!status.ok()) return done(status);
          done(**std::move(result));
        });
  }

  /// Why the ledger takes no decisions now; OK while it does.
  absl::Status health() const;

  /// As LedgerStore::History; reads on the caller's thread.
  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most);

 private:
  struct Entry {
    Decide decide;
    Done done;
    absl::Status status;
  };

  /// Works until nothing is queued.
  void Drain();
  std::vector<Entry> TakeQueued();
  void Process(std::vector<Entry> entries) DEVMGR_REQUIRES(*executor_);
  /// Decides all entries; returns what is to be written.
  std::vector<state::Batch> DecideAll(std::vector<Entry>& entries)
      DEVMGR_REQUIRES(*executor_);
  absl::Status Write(const std::vector<state::Batch>& batches)
      DEVMGR_REQUIRES(*executor_);
  absl::Status Reopen() DEVMGR_REQUIRES(*executor_);
  /// A write of objects has failed.
  void ReopenForObjects(const absl::Status& failure)
      DEVMGR_REQUIRES(*executor_);
  void CopyInitial() DEVMGR_REQUIRES(*executor_);
  void SetHealth(const absl::Status& status);
  void Report(const absl::Status& health) const;

  // Constant after construction.
  const std::function<std::int64_t()> now_ms_;
  const Publish publish_;
  const OnHealth on_health_;
  const std::unique_ptr<checkpoint::LedgerStore> store_;

  /// Null once it is copied.
  const state::State* initial_ DEVMGR_GUARDED_BY(*executor_);
  state::State working_ DEVMGR_GUARDED_BY(*executor_);
  bool in_doubt_ DEVMGR_GUARDED_BY(*executor_) = false;
  /// Written, but not known to be on disk or not.
  std::vector<state::Batch> doubtful_ DEVMGR_GUARDED_BY(*executor_);

  mutable Mutex mutex_;
  std::deque<Entry> queue_ DEVMGR_GUARDED_BY(mutex_);
  bool draining_ DEVMGR_GUARDED_BY(mutex_) = false;  ///< Or about to.
  bool stopping_ DEVMGR_GUARDED_BY(mutex_) = false;
  absl::Status health_ DEVMGR_GUARDED_BY(mutex_);

  const std::unique_ptr<Executor> executor_;
};

}  // namespace devmgr::ledger
