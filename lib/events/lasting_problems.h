// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "common/executor.h"
#include "events/event_log.h"

namespace devmgr::events {

/// Has a warning for each problem of a kind of object that lasts, such as a
/// file that cannot be used. A problem that stays is one event; one that ended
/// and comes again is counted. Lives on the manager's thread.
class LastingProblems {
 public:
  /// The object's name, and what is wrong with it.
  using Problem = std::pair<std::string, std::string>;

  /// What ends within this time, such as a file that is being written, is not
  /// worth an event.
  static constexpr std::chrono::milliseconds kDelay{1'000};

  /// `executor` and `events` are borrowed and must outlive this.
  LastingProblems(Executor& executor, EventLog& events, std::string reason,
                  std::string object_kind)
      : executor_(executor),
        events_(events),
        reason_(std::move(reason)),
        object_kind_(std::move(object_kind)) {}
  ~LastingProblems() { executor_.Cancel(timer_); }

  /// All problems that there are now; what is not among them has ended.
  void Set(std::set<Problem> current);

 private:
  void Report();

  Executor& executor_;
  EventLog& events_;
  const std::string reason_;
  const std::string object_kind_;
  std::set<Problem> current_;
  std::set<Problem> reported_;  ///< Those of `current_` that have an event.
  TimerId timer_ = 0;
};

}  // namespace devmgr::events
