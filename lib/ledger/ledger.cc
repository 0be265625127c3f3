// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.h"

#include <utility>

#include "common/status.h"

namespace devmgr::ledger {

Ledger::Ledger(std::unique_ptr<checkpoint::LedgerStore> store,
               const state::State* initial,
               std::function<std::int64_t()> now_ms, Publish publish,
               std::unique_ptr<Executor> executor, OnHealth on_health)
    : now_ms_(std::move(now_ms)),
      publish_(std::move(publish)),
      on_health_(std::move(on_health)),
      store_(std::move(store)),
      initial_(initial),
      executor_(executor != nullptr ? std::move(executor)
                                    : ThreadExecutor::Start("devmgr-ledger")) {}

Ledger::~Ledger() { Stop(); }

absl::StatusOr<state::State> Ledger::Load() { return store_->Load(); }

void Ledger::OpenObjects() {
  store_->OpenObjects([this](const absl::Status& failure) {
    executor_->Post([this, failure] {
      DEVMGR_ASSERT_ON(*executor_);
      ReopenForObjects(failure);
    });
  });
}

void Ledger::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  executor_->Stop();
  // No thread uses the store any more, and what a write of objects still posts
  // is dropped.
  store_->CloseObjects();
}

void Ledger::Submit(Decide decide) {
  Submit(std::move(decide), [](const absl::Status&) {});
}

void Ledger::Submit(Decide decide, Executor& executor, Done done) {
  Submit(std::move(decide),
         [&executor, done = std::move(done)](const absl::Status& status) {
           executor.Post([done, status] { done(status); });
         });
}

void Ledger::Submit(Decide decide, Done done) {
  {
    MutexLock lock(mutex_);
    if (!stopping_) {
      queue_.push_back({std::move(decide), std::move(done), absl::OkStatus()});
      if (!std::exchange(draining_, true)) {
        executor_->Post([this] { Drain(); });
      }
      return;
    }
  }
  done(CancelledError("the ledger is closed"));
}

absl::Status Ledger::health() const {
  MutexLock lock(mutex_);
  return health_;
}

absl::StatusOr<std::vector<state::Batch>> Ledger::History(std::uint64_t after,
                                                          std::size_t most) {
  return store_->History(after, most);
}

void Ledger::Drain() {
  DEVMGR_ASSERT_ON(*executor_);
  for (;;) {
    std::vector<Entry> entries = TakeQueued();
    if (entries.empty()) return;
    Process(std::move(entries));
  }
}

/// Empty when nothing is left; the next Submit then drains again.
std::vector<Ledger::Entry> Ledger::TakeQueued() {
  MutexLock lock(mutex_);
  draining_ = !queue_.empty();
  std::vector<Entry> entries;
  while (!queue_.empty() && entries.size() < kMaxFold) {
    entries.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return entries;
}

void Ledger::Process(std::vector<Entry> entries) {
  CopyInitial();
  absl::Status status = in_doubt_ ? Reopen() : absl::OkStatus();
  if (status.ok()) {
    const std::vector<state::Batch> batches = DecideAll(entries);
    if (!batches.empty()) status = Write(batches);
  }
  for (Entry& entry : entries) {
    // Refusals were decided on a state that never came to be: they fail too.
    entry.done(status.ok() ? entry.status : status);
  }
}

void Ledger::CopyInitial() {
  if (initial_ != nullptr) working_ = *std::exchange(initial_, nullptr);
}

std::vector<state::Batch> Ledger::DecideAll(std::vector<Entry>& entries) {
  std::vector<state::Batch> batches;
  for (Entry& entry : entries) {
    auto decision = entry.decide(working_);
    entry.status = decision.status();
    if (!decision.ok() || !state::IsWorthWriting(*decision)) continue;
    state::Batch batch{working_.seq + 1, now_ms_(), *std::move(decision), {}};
    entry.status = state::ApplyNew(working_, batch);
    if (entry.status.ok()) batches.push_back(std::move(batch));
  }
  return batches;
}

/// Writes and publishes; after a failure finds out what holds.
absl::Status Ledger::Write(const std::vector<state::Batch>& batches) {
  const absl::Status written = store_->Append(batches);
  if (written.ok()) {
    for (const state::Batch& batch : batches) publish_(batch);
    return written;
  }
  in_doubt_ = true;
  doubtful_ = batches;
  const absl::Status failure =
      WithContext(written, "checkpoint ResourceClaim cache");
  Report(failure);
  DEVMGR_RETURN_IF_ERROR(Reopen());
  // Adopted when they are there after all (Reopen has published them then).
  return working_.seq >= batches.back().seq ? absl::OkStatus() : failure;
}

/// Opens the store again and falls back to what it holds. Doubtful batches
/// that it holds are published: they are decided.
absl::Status Ledger::Reopen() {
  auto loaded = store_->Reopen();
  if (!loaded.ok()) {
    const absl::Status status =
        UnavailableError("ledger cannot be opened after a failed write: {}",
                         MessageOf(loaded.status()));
    SetHealth(status);
    Report(status);
    return status;
  }
  working_ = *std::move(loaded);
  in_doubt_ = false;
  for (const state::Batch& batch : std::exchange(doubtful_, {})) {
    if (batch.seq <= working_.seq) publish_(batch);
  }
  SetHealth(absl::OkStatus());
  Report(absl::OkStatus());
  return absl::OkStatus();
}

void Ledger::ReopenForObjects(const absl::Status& failure) {
  // A decision may have opened it again meanwhile.
  if (!in_doubt_ && !store_->ObjectsFailed()) return;
  CopyInitial();
  if (!std::exchange(in_doubt_, true)) Report(failure);
  // What it fails with is reported, and tried again with the next decision or
  // the next write of objects.
  Reopen().IgnoreError();
}

void Ledger::Report(const absl::Status& health) const {
  if (on_health_) on_health_(health);
}

void Ledger::SetHealth(const absl::Status& status) {
  MutexLock lock(mutex_);
  health_ = status;
}

}  // namespace devmgr::ledger
