// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_changes.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/mutex.h"

namespace devmgr::events {

/// The newest changes of devices, for any number of readers, of which none has
/// anything here: one that does not come back costs nothing, and what it has
/// not read is dropped in time.
/// Thread-safe. One thread adds; it never waits for a reader but for the copy
/// of some pointers.
class ChangeRing {
 public:
  /// Changes and devices in them; the oldest changes are dropped.
  static constexpr std::size_t kMostDevices = 32'768;

  /// `process` is not 0; `sequence`: of the last decision, whose changes are
  /// known elsewhere.
  ChangeRing(std::uint64_t process, std::uint64_t sequence,
             std::size_t most_devices = kMostDevices);

  /// Changes of the next decision with their tokens, and none of health. There
  /// may be none.
  void AddDecision(std::uint64_t sequence, std::vector<DeviceChange> changes);
  /// Changes of health, which get their tokens.
  void AddHealth(std::vector<DeviceChange> changes);

  /// The place after all that was added.
  ChangeToken End() const;

  /// Whether all changes after `token` are here.
  bool Reaches(const ChangeToken& token) const;
  /// Changes after a token, `most` at most. Nothing: not all of them are here.
  std::optional<DeviceChanges> After(const ChangeToken& token,
                                     std::size_t most) const;

  /// Waits until there is a change after `token`, or a reader of it has missed
  /// some.
  void WaitPast(const ChangeToken& token,
                std::chrono::steady_clock::time_point deadline) const;

 private:
  using Changes = std::vector<std::shared_ptr<const DeviceChange>>;

  bool ReachesLocked(const ChangeToken& token) const DEVMGR_REQUIRES(mutex_);
  /// Drops what is too much, into `dropped`, to be destroyed without the lock.
  void TrimLocked(Changes* dropped) DEVMGR_REQUIRES(mutex_);
  void Add(const ChangeToken& end, std::vector<DeviceChange> changes);

  const std::uint64_t process_;
  const std::size_t most_devices_;
  mutable Mutex mutex_;
  mutable CondVar added_;
  /// In order.
  std::deque<std::shared_ptr<const DeviceChange>> changes_
      DEVMGR_GUARDED_BY(mutex_);
  std::size_t devices_ DEVMGR_GUARDED_BY(mutex_) = 0;
  ChangeToken begin_ DEVMGR_GUARDED_BY(mutex_);  ///< All after it are here.
  ChangeToken end_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::events
