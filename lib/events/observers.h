// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>

#include <functional>
#include <memory>
#include <vector>

#include "common/executor.h"

namespace devmgr::events {

/// Those that hear of changes. Lives on `executor`, which is borrowed and has
/// to outlive this, but for Add.
class Observers : public std::enable_shared_from_this<Observers> {
 public:
  Observers(Executor& executor, std::vector<DeviceManagerObserver*> observers)
      : executor_(executor), observers_(std::move(observers)) {}

  /// Until what is returned is destroyed, or all of them are. Thread-safe.
  std::unique_ptr<Observation> Add(DeviceManagerObserver& observer);

  /// Calls `act` for each observer once the task that calls this is over and
  /// what it changed is published. One that is added or removed meanwhile is
  /// not called.
  void Tell(std::function<void(DeviceManagerObserver&)> act);

 private:
  class Handle;

  void TellNow(const std::function<void(DeviceManagerObserver&)>& act) const;

  Executor& executor_;
  std::vector<DeviceManagerObserver*> observers_;
};

}  // namespace devmgr::events
