// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/executor.h"
#include "common/mutex.h"

namespace devmgr {

/// Brings answers that come on any thread and at any time to an executor, as
/// long as the one that asked is there. Is destroyed on the executor, or when
/// nothing runs on it any more.
class ExecutorGate {
 public:
  explicit ExecutorGate(Executor& executor)
      : shared_(std::make_shared<Shared>(executor)) {}
  ~ExecutorGate() {
    MutexLock lock(shared_->mutex);
    shared_->executor = nullptr;
  }
  ExecutorGate(const ExecutorGate&) = delete;
  ExecutorGate& operator=(const ExecutorGate&) = delete;

  /// A function that has the executor run `answer`, in a turn of its own. It
  /// may be called on any thread, also after the gate is gone: then nothing
  /// runs.
  template <typename Arg>
  std::function<void(const Arg&)> Pass(
      std::function<void(const Arg&)> answer) const {
    return [shared = shared_, answer = std::move(answer)](const Arg& arg) {
      MutexLock lock(shared->mutex);
      if (shared->executor == nullptr) return;
      shared->executor->Post([shared, answer, arg] {
        if (shared->IsOpen()) answer(arg);
      });
    };
  }

 private:
  struct Shared {
    explicit Shared(Executor& runs) : executor(&runs) {}
    bool IsOpen() {
      MutexLock lock(mutex);
      return executor != nullptr;
    }
    Mutex mutex;
    Executor* executor DEVMGR_GUARDED_BY(mutex);  ///< Null: it has ended.
  };

  const std::shared_ptr<Shared> shared_;
};

}  // namespace devmgr
