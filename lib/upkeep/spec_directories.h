// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi_cache.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "events/event_log.h"
#include "events/lasting_problems.h"

namespace devmgr::upkeep {

/// The CDI directories of the node, followed from the start on. What is wrong
/// there and lasts is an event: a file that is no spec, a link that leads
/// nowhere, files that define the same device, what cannot be read. A directory
/// that does not exist is fine.
///
/// Lives on the manager's thread; directories are read on one of its own
/// (`devmgr-specs`) and on the cache's (`devmgr-cdi`), which sleep in between.
class SpecDirectories {
 public:
  /// `executor` and `events` are borrowed and must outlive this. Does not wait
  /// for the disk.
  SpecDirectories(Executor& executor, events::EventLog& events,
                  std::vector<std::filesystem::path> directories);
  ~SpecDirectories() { Stop(); }

  /// False: there is nothing to read.
  bool any() const { return disk_ != nullptr; }
  /// As they were given, for messages.
  const std::vector<std::string>& names() const { return names_; }

  /// Looks for changes; then calls `done` on the thread that read, with what
  /// the directories held after this was called.
  void Read(std::function<void(const CdiRegistry&)> done);

  /// Waits for the look that is under way; no `done` is called from now on, and
  /// no problem becomes an event. Not on the manager's thread.
  void Stop();

 private:
  void Open(const std::vector<std::filesystem::path>& directories);
  /// On the reading thread.
  void Tell();
  std::set<events::LastingProblems::Problem> ProblemsOf(
      const CdiRegistry& registry) const;

  Executor& executor_;
  const std::vector<std::string> names_;
  events::LastingProblems problems_;
  /// Used on `disk_` only, until that has stopped.
  std::unique_ptr<CdiCache> cache_;
  std::unique_ptr<Executor> disk_;  ///< Null without directories.
};

}  // namespace devmgr::upkeep
