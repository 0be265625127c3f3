// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/executor_gate.h"
#include "events/event_log.h"

namespace devmgr::upkeep {

/// Takes back what drivers that are gone have published, so that nothing is
/// scheduled to them: the slices of all drivers once at the start, those of one
/// when it has had no connection for the grace period. Tries without end, with
/// a back-off, until it succeeds or the driver is back.
/// Follows the kubelet's pkg/kubelet/cm/dra/plugin. Lives on its executor.
class SliceKeeper {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{1'000};
  static constexpr std::chrono::milliseconds kLastRetry{300'000};

  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    events::EventLog& events;
    ObjectSink* sink = nullptr;  ///< Null: nothing is ever done.
    std::chrono::milliseconds grace_period;
    std::function<bool(const std::string& driver)> is_connected;
  };
  explicit SliceKeeper(Parts parts);
  ~SliceKeeper();

  void Start();
  /// The driver registered, connected, lost a connection or left.
  void OnDriver(const std::string& driver);

 private:
  /// What is to be deleted, from the loss of the last connection on.
  struct Pending {
    TimerId timer = 0;
    std::uint64_t number = 0;  ///< Tells it from an earlier one of the driver.
    BackOff back_off{kFirstRetry, kLastRetry};
  };

  void Arm(const std::string& driver, std::chrono::milliseconds delay);
  void Delete(const std::string& driver);
  void OnDeleted(const std::string& driver, std::uint64_t number,
                 const absl::Status& status);

  const Parts parts_;
  std::uint64_t last_number_ = 0;
  /// By driver; the empty name stands for all of them.
  std::map<std::string, Pending> pending_;
  const ExecutorGate gate_;
};

}  // namespace devmgr::upkeep
