// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/runtime_report.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/back_off.h"
#include "common/executor.h"
#include "shim/device_source.h"

namespace devmgr::shim {

/// Tells the source of devices what the shim did and saw: one report at a time,
/// when there is news, and again until it was taken. Lives on `executor`.
class RuntimeReporter {
 public:
  /// Events that wait to be reported; of more the newest are only counted.
  static constexpr std::size_t kMaxWaiting = kMaxReportedEvents - 1;
  /// Between two reports, and after ones that failed.
  static constexpr std::chrono::milliseconds kPause{200};
  static constexpr std::chrono::milliseconds kLastRetry{5'000};

  struct Parts {
    ShimIdentity identity;
    std::string listen;
    std::string endpoint;
    /// Fills in the runtime's name and the counters, as they are now.
    std::function<void(RuntimeReport*)> fill_in;
    /// What became of the report that was filled in last; may be empty.
    std::function<void(const absl::Status&)> on_sent;
    /// Reports are not taken, or are again (OK). Each change once.
    std::function<void(const absl::Status&)> on_taken;
  };

  /// `source` is borrowed. Must be destroyed once `executor` has stopped.
  RuntimeReporter(DeviceSource& source, std::shared_ptr<Executor> executor,
                  Parts parts);

  /// Numbered by the shim, ascending.
  void Add(EventInfo event);
  /// The counters are others now, or the source may have forgotten them.
  void OnNews();
  /// The source waits for this: there is no pause, unless it took no report.
  void OnAwaitedNews();
  /// The last report, after the one that is under way; `done` runs, on any
  /// thread, when it has been taken or has failed.
  void End(std::function<void()> done);

 private:
  void Send();
  void SendLast();
  RuntimeReport Next() const;
  void OnSent(std::uint64_t last_event, const absl::Status& status);
  void SendAfter(std::chrono::milliseconds pause);

  DeviceSource& source_;
  const std::shared_ptr<Executor> executor_;
  const Parts parts_;
  std::deque<EventInfo> waiting_;
  std::uint64_t left_out_ = 0;       ///< Events that came when too many waited.
  std::uint64_t last_left_out_ = 0;  ///< Number of the last one of them.
  bool news_ = false;
  bool awaited_ = false;  ///< What the source waits for is among the news.
  bool sending_ = false;
  std::uint64_t sending_left_out_ = 0;
  TimerId timer_ = 0;
  BackOff back_off_{kPause, kLastRetry};
  bool taken_ = true;
  bool over_ = false;
  std::function<void()> ended_;
};

}  // namespace devmgr::shim
