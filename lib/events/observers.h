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

  /// Calls `act` for each observer. One that is added meanwhile is not called,
  /// and neither is one that is removed meanwhile.
  void Tell(const std::function<void(DeviceManagerObserver&)>& act) const;

 private:
  class Handle;

  Executor& executor_;
  std::vector<DeviceManagerObserver*> observers_;
};

}  // namespace devmgr::events
