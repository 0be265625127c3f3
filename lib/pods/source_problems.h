// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <string>
#include <utility>

#include "events/lasting_problems.h"

namespace devmgr::pods {

/// Has an event for each problem of the source's objects that lasts: bad files,
/// documents that are not used, the same object twice. One that goes and comes
/// again is counted. Lives on the manager's thread.
class SourceProblems {
 public:
  static constexpr std::chrono::milliseconds kDelay =
      events::LastingProblems::kDelay;

  /// `executor` and `events` are borrowed and must outlive this. `source`: what
  /// problems without a file are about.
  SourceProblems(Executor& executor, events::EventLog& events,
                 std::string source)
      : problems_(executor, events, "ManifestProblem", "Manifest"),
        source_(std::move(source)) {}

  void OnObjects(const ObjectSnapshot& objects);

 private:
  events::LastingProblems problems_;
  const std::string source_;
};

}  // namespace devmgr::pods
