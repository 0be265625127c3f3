// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <string>
#include <utility>

#include "events/lasting_problems.h"

namespace devmgr::pods {

/// Has an event for each problem of the source that lasts: `ManifestProblem`
/// for its objects (bad files, documents that are not used, the same object
/// twice), `SourceProblem` for itself (a server that does not answer, or
/// refuses the credentials). One that goes and comes again is counted. Lives on
/// the manager's thread.
class SourceProblems {
 public:
  static constexpr std::chrono::milliseconds kDelay =
      events::LastingProblems::kDelay;

  /// `executor` and `events` are borrowed and must outlive this. `source`: what
  /// problems of itself, and those without a file, are about.
  SourceProblems(Executor& executor, events::EventLog& events,
                 std::string source)
      : of_objects_(executor, events, "ManifestProblem", "Manifest"),
        of_source_(executor, events, "SourceProblem", "Source"),
        source_(std::move(source)) {}

  void OnObjects(const ObjectSnapshot& objects);

 private:
  events::LastingProblems of_objects_;
  events::LastingProblems of_source_;
  const std::string source_;
};

}  // namespace devmgr::pods
