// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/back_off.h"
#include "common/mutex.h"
#include "common/poll_timer.h"
#include "common/poller.h"
#include "watcher/watched_directories.h"

namespace devmgr::cdistore {

/// Tells when directories should be looked at again, by a thread of its own
/// (`devmgr-cdi`), which sleeps while nothing changes:
///
///   idle --event--> waiting --quiet, or after the latest moment--> look -->
///   idle
///
/// A directory that cannot be watched is tried again with a back-off.
class DirectoriesWatch {
 public:
  struct Options {
    std::vector<std::filesystem::path> directories;
    std::chrono::milliseconds quiet{50};
    std::chrono::milliseconds latest{500};
    watcher::WatchOptions watch;
  };

  /// `look` runs on the watch's thread: once things changed, after Wake, and
  /// when a directory cannot be watched any more, or can be again.
  DirectoriesWatch(Options options, std::function<void()> look);
  ~DirectoriesWatch() { Stop(); }

  /// Begins; once, and returns when each directory was tried. What goes wrong
  /// is a problem of all directories.
  void Start();
  /// Joins; `look` does not run any more.
  void Stop();

  /// Why changes of a directory may go unnoticed, by its index; empty: none do.
  std::map<std::size_t, std::string> Problems() const {
    return watched_.Problems();
  }

  /// Has `look` run at once. From any thread.
  void Wake();

  /// The directory could not be read, now it can, and so can be watched. From
  /// any thread.
  void WatchAnew(std::size_t index);

 private:
  using Time = std::chrono::steady_clock::time_point;

  absl::Status Begin();
  void OnTimer();
  void OnEvent(const watcher::DirectoryEvent& event);
  /// True when one that was not watched is now, or the other way round.
  bool StartWatchers();
  /// Sets the timer for what is due first.
  void Arm() DEVMGR_REQUIRES(mutex_);

  // Constant after construction.
  const Options options_;
  const std::function<void()> look_;

  mutable Mutex mutex_;
  std::vector<bool> watch_anew_ DEVMGR_GUARDED_BY(mutex_);
  std::optional<Time> first_event_ DEVMGR_GUARDED_BY(mutex_);
  std::optional<Time> look_at_ DEVMGR_GUARDED_BY(mutex_);
  std::optional<Time> retry_at_ DEVMGR_GUARDED_BY(mutex_);

  // The poller's thread only.
  BackOff back_off_;
  std::optional<std::promise<void>> tried_;  ///< All, for the first time.

  watcher::WatchedDirectories<std::size_t> watched_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<PollTimer> timer_;
};

}  // namespace devmgr::cdistore
