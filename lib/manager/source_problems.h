// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "common/executor.h"
#include "manager/event_log.h"

namespace devmgr::manager {

/// Has an event for each problem of the source's objects that lasts: bad files,
/// documents that are not used, the same object twice. One that goes and comes
/// again is counted. Lives on the manager's thread.
class SourceProblems {
 public:
  /// What ends within this time, such as a file that is being written, is not
  /// worth an event.
  static constexpr std::chrono::milliseconds kDelay{1'000};

  /// `executor` and `events` are borrowed and must outlive this. `source`: what
  /// problems without a file are about.
  SourceProblems(Executor& executor, EventLog& events, std::string source)
      : executor_(executor), events_(events), source_(std::move(source)) {}
  ~SourceProblems() { executor_.Cancel(timer_); }

  void OnObjects(const ObjectSnapshot& objects);

 private:
  /// A file, and what is wrong with it.
  using Problem = std::pair<std::string, std::string>;

  void Report();

  Executor& executor_;
  EventLog& events_;
  const std::string source_;
  std::set<Problem> current_;
  std::set<Problem> reported_;  ///< Those of `current_` that have an event.
  TimerId timer_ = 0;
};

}  // namespace devmgr::manager
