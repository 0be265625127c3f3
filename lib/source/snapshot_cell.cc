// SPDX-License-Identifier: Apache-2.0
#include "source/snapshot_cell.h"

#include <utility>

namespace devmgr::source {

std::shared_ptr<const ObjectSnapshot> SnapshotCell::Get() const {
  MutexLock lock(mutex_);
  return snapshot_;
}

void SnapshotCell::Put(std::shared_ptr<const ObjectSnapshot> snapshot) {
  // Swapped, so that the old one is destroyed after the lock is released.
  MutexLock lock(mutex_);
  snapshot_.swap(snapshot);
}

void SnapshotCell::SetSubscriber(std::function<void()> changed) {
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

void SnapshotCell::Notify() {
  std::shared_ptr<const std::function<void()>> subscriber;
  {
    MutexLock lock(mutex_);
    if (subscriber_ == nullptr) return;
    subscriber = subscriber_;
    notifying_ = std::this_thread::get_id();
  }
  (*subscriber)();
  // What the function holds is let go before Unsubscribe can return.
  subscriber.reset();
  MutexLock lock(mutex_);
  notifying_ = std::thread::id();
  idle_.NotifyAll();
}

}  // namespace devmgr::source
