// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/runtime_report.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "events/event_log.h"

namespace devmgr::upkeep {

/// What CRI shims have reported. Not thread-safe: lives on the manager's
/// thread.
class RuntimeBook {
 public:
  /// Sessions at a time, one for each socket.
  static constexpr std::size_t kMaxSessions = 64;

  /// `events` is borrowed.
  RuntimeBook(events::EventLog& events, std::function<WallTime()> now)
      : events_(events), now_(std::move(now)) {}

  /// As DeviceManager::ReportRuntime.
  absl::Status Take(const RuntimeReport& report);
  /// By their sockets. One that has not reported since is the same object.
  std::vector<std::shared_ptr<const RuntimeInfo>> Runtimes() const;

 private:
  struct Session {
    std::shared_ptr<const RuntimeInfo> info;
    std::uint64_t last_event = 0;  ///< By the session's own numbers.
  };

  events::EventLog& events_;
  const std::function<WallTime()> now_;
  std::map<std::string, Session> sessions_;  ///< By the shim's socket.
};

}  // namespace devmgr::upkeep
