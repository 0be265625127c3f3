// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <utility>

#include "checkpoint/codec.h"
#include "checkpoint/database_objects.h"
#include "checkpoint/history_window.h"
#include "checkpoint/ledger_store.h"
#include "common/mutex.h"
#include "common/status.h"
#include "state/history.h"

namespace devmgr::checkpoint {
namespace {

class InMemoryStore : public LedgerStore {
 public:
  explicit InMemoryStore(HistoryLimits limits) : window_(limits) {}

  absl::StatusOr<state::State> Load() override {
    MutexLock lock(mutex_);
    return state_;
  }

  absl::Status Append(std::span<const state::Batch> batches) override {
    MutexLock lock(mutex_);
    // A batch that does not apply is a bug of the caller's. What went before
    // it stays, so that a decision costs the same however much is stored.
    for (const state::Batch& batch : batches) {
      DEVMGR_RETURN_IF_ERROR(state::Apply(state_, batch));
      window_.Add(batch.seq, EncodeBatch(batch).size());
      history_.push_back(batch);
    }
    while (!history_.empty() && history_.front().seq < window_.first()) {
      history_.pop_front();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<state::State> Reopen() override { return Load(); }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    MutexLock lock(mutex_);
    return state::BatchesAfter(history_, after, most);
  }

  std::shared_ptr<ObjectSpace> Objects() override { return objects_; }

 private:
  const std::shared_ptr<ObjectSpace> objects_ = NewInMemoryObjects();
  Mutex mutex_;
  state::State state_ DEVMGR_GUARDED_BY(mutex_);
  HistoryWindow window_ DEVMGR_GUARDED_BY(mutex_);
  std::deque<state::Batch> history_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LedgerStore> NewInMemoryStore(HistoryLimits limits) {
  return std::make_unique<InMemoryStore>(limits);
}

}  // namespace devmgr::checkpoint
