// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/executor.h"
#include "events/event_log.h"

namespace devmgr::upkeep {

/// What is known of what a container runtime runs, as it is shown: an event
/// when that is not known any more for longer than a moment, and when it is
/// again. Lives on the manager's thread.
class RuntimeNews {
 public:
  static constexpr std::chrono::milliseconds kDelay{1'000};

  /// All borrowed; must outlive this.
  RuntimeNews(Executor& executor, events::EventLog& events,
              const RuntimeSource& source);
  ~RuntimeNews() { executor_.Cancel(timer_); }
  RuntimeNews(const RuntimeNews&) = delete;
  RuntimeNews& operator=(const RuntimeNews&) = delete;

  /// The source may have another snapshot.
  void OnRuntime();
  /// As of the snapshot that there is now; put together once for each.
  const RuntimeSourceInfo& Info();
  /// The snapshot that Info was of; null: it was not called yet.
  const std::shared_ptr<const RuntimeSnapshot>& shown() const { return shown_; }

 private:
  void ReportUnknown();

  Executor& executor_;
  events::EventLog& events_;
  const RuntimeSource& source_;
  RuntimeSourceInfo info_;
  std::shared_ptr<const RuntimeSnapshot> shown_;  ///< That `info_` is of.
  TimerId timer_ = 0;
  std::optional<std::string> reported_;  ///< Why it is not known.
};

}  // namespace devmgr::upkeep
