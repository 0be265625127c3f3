// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>
#include <devmgr/metrics.h>
#include <devmgr/status_types.h>

#include <map>
#include <string>
#include <utility>

#include "common/executor.h"
#include "events/event_log.h"

namespace devmgr::upkeep {

/// Reports what concerns the node as a whole, as events and in the log: how the
/// ledger was found, whether it can be written, which feature gates turn
/// nothing. Lives on the manager's thread.
class NodeNews {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    events::EventLog& events;
    MetricsSink& metrics;
    LogSink log;  ///< May be empty.
    std::string node_name;
  };
  explicit NodeNews(Parts parts) : parts_(std::move(parts)) {}

  void OnOpened(const RecoveryInfo& recovery,
                const std::map<std::string, bool>& gates);
  /// A write of the ledger failed, or it takes decisions again.
  void OnLedger(const absl::Status& health);

 private:
  void Report(bool warning, const char* reason, const std::string& message);
  void Log(LogLevel level, const std::string& message);

  const Parts parts_;
};

}  // namespace devmgr::upkeep
