// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <functional>
#include <memory>
#include <thread>

#include "common/mutex.h"

namespace devmgr::source {

/// What all sources share: the published snapshot and its one subscriber.
/// Thread-safe; `Publish` and `Notify` from one thread at a time.
class SnapshotCell {
 public:
  std::shared_ptr<const ObjectSnapshot> Get() const;
  void Put(std::shared_ptr<const ObjectSnapshot> snapshot);

  /// Replaces the subscriber; empty: there is none from now on. When this
  /// returns, the one before does not run any more and will not, unless this
  /// is called from within it.
  void SetSubscriber(std::function<void()> changed);
  /// Runs the subscriber on this thread, with no lock held.
  void Notify();

 private:
  mutable Mutex mutex_;
  CondVar idle_;
  std::shared_ptr<const ObjectSnapshot> snapshot_ DEVMGR_GUARDED_BY(mutex_) =
      std::make_shared<const ObjectSnapshot>();
  /// Shared with a running `Notify`, which must not hold the lock.
  std::shared_ptr<const std::function<void()>> subscriber_
      DEVMGR_GUARDED_BY(mutex_);
  std::thread::id notifying_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::source
