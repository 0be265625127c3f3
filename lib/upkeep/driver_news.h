// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/executor.h"
#include "dra/drivers.h"
#include "events/event_log.h"
#include "upkeep/debt_keeper.h"
#include "upkeep/slice_keeper.h"

namespace devmgr::upkeep {

/// Passes on that a driver came, connected or left: to those that keep its
/// slices and debts, to pods that wait for it, and as an event. Lives on the
/// manager's thread.
class DriverNews {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    const dra::Drivers& drivers;
    events::EventLog& events;
    SliceKeeper& slices;
    DebtKeeper& debts;
    std::function<void(const std::string& driver)> wake;
  };
  explicit DriverNews(Parts parts) : parts_(std::move(parts)) {}

  /// Something of this driver's instances changed.
  void OnDriverChange(const std::string& driver);

 private:
  void Report(const std::string& driver, bool connected);

  const Parts parts_;
  std::map<std::string, bool> connected_;  ///< Of those registered.
};

}  // namespace devmgr::upkeep
