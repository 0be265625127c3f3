// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/mutex.h"

namespace devmgr {

/// A published snapshot and its one subscriber; at first an empty snapshot and
/// no subscriber. Thread-safe; `Notify` from one thread at a time.
template <typename Snapshot>
class SnapshotCell {
 public:
  std::shared_ptr<const Snapshot> Get() const {
    MutexLock lock(mutex_);
    return snapshot_;
  }

  void Put(std::shared_ptr<const Snapshot> snapshot) {
    // Swapped, so that the old one is destroyed after the lock is released.
    MutexLock lock(mutex_);
    snapshot_.swap(snapshot);
  }

  /// Replaces the subscriber; empty: there is none from now on. When this
  /// returns, the one before does not run any more and will not, unless this
  /// is called from within it.
  void SetSubscriber(std::function<void()> changed) {
    std::shared_ptr<const std::function<void()>> subscriber;
    if (changed) {
      subscriber =
          std::make_shared<const std::function<void()>>(std::move(changed));
    }
    MutexLock lock(mutex_);
    subscriber_.swap(subscriber);
    while (notifying_ != std::thread::id() &&
           notifying_ != std::this_thread::get_id()) {
      idle_.Wait(mutex_);
    }
  }

  /// Runs the subscriber on this thread, with no lock held.
  void Notify() {
    std::shared_ptr<const std::function<void()>> subscriber;
    {
      MutexLock lock(mutex_);
      if (subscriber_ == nullptr) return;
      subscriber = subscriber_;
      notifying_ = std::this_thread::get_id();
    }
    (*subscriber)();
    // What the function holds is let go before SetSubscriber can return.
    subscriber.reset();
    MutexLock lock(mutex_);
    notifying_ = std::thread::id();
    idle_.NotifyAll();
  }

 private:
  mutable Mutex mutex_;
  CondVar idle_;
  std::shared_ptr<const Snapshot> snapshot_ DEVMGR_GUARDED_BY(mutex_) =
      std::make_shared<const Snapshot>();
  /// Shared with a running `Notify`, which must not hold the lock.
  std::shared_ptr<const std::function<void()>> subscriber_
      DEVMGR_GUARDED_BY(mutex_);
  std::thread::id notifying_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr
