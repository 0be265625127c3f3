// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/executor.h"
#include "common/poller.h"
#include "watcher/directory_watcher.h"

namespace devmgr::apiserver {

/// Hears that one of some files has changed, appeared or vanished, by watching
/// their directories. Files may be symbolic links within their directory, as
/// those of a mounted secret are; what a link elsewhere leads to is not
/// watched. Lives on an executor, and has a thread that waits for the kernel.
class FileWatch {
 public:
  /// `changed` runs on `executor`, at most once for all that changes in a short
  /// while.
  FileWatch(Executor& executor, std::function<void()> changed);
  ~FileWatch();

  /// Replaces the files that are watched.
  ///   ResourceExhausted  the kernel gives no inotify instance, or no watch;
  ///                      what could be watched is
  absl::Status Watch(const std::set<std::filesystem::path>& files);

 private:
  /// A writer that replaces several files is waited for so long.
  static constexpr std::chrono::milliseconds kQuiet{100};

  /// What may outlive the watch on the executor.
  struct Shared;

  absl::Status WatchDirectory(const std::filesystem::path& directory,
                              std::set<std::string> names);

  Executor& executor_;
  const std::shared_ptr<Shared> shared_;
  std::set<std::filesystem::path> files_;
  std::unique_ptr<Poller> poller_;
  std::map<std::filesystem::path, std::unique_ptr<watcher::DirectoryWatcher>>
      watchers_;
};

}  // namespace devmgr::apiserver
