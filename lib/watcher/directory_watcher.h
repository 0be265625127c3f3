// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/poller.h"

namespace devmgr::watcher {

/// A hint that something happened. Hints may be repeated, merged or too many;
/// none is lost: after an overflow of the kernel's queue a kRescan comes.
struct DirectoryEvent {
  enum class Kind {
    kRescan,      ///< Look at everything again: at first, after an overflow,
                  ///< or when the directory itself appeared, went, was
                  ///< swapped or mounted over.
    kAppeared,    ///< Created or renamed into the directory.
    kChanged,     ///< A writer closed the file.
    kWriting,     ///< Written to by a process that has not closed it yet.
    kAttributes,  ///< Mode, owner or times differ: it may have become readable.
    kVanished,    ///< Deleted or renamed away.
  };
  Kind kind = Kind::kRescan;
  std::string name;  ///< File name; empty with kRescan.
  /// With kRescan: why changes may go unnoticed from now on; empty when none
  /// does.
  std::string problem;
};

/// The directory that is watched at this moment.
struct WatchedPlace {
  /// Another number for each directory, also for one in the place of another;
  /// never used again. -1: there is none.
  int id = -1;
  std::string path;  ///< Without symbolic links. Empty when there is none.
  friend bool operator==(const WatchedPlace&, const WatchedPlace&) = default;
};

struct WatchOptions {
  /// As inotify_add_watch, which it is by default.
  std::function<int(int inotify, const char* path, std::uint32_t mask)>
      add_watch;
  /// Between two attempts to watch what could not be watched; doubles.
  std::chrono::milliseconds first_retry{1'000};
  std::chrono::milliseconds max_retry{60'000};
};

/// Watches one directory (not what lies below it) through inotify. The
/// directory may not exist yet, may vanish and come back, and may be reached
/// through symbolic links that are swapped: its parents are watched for that.
/// What is mounted over it, or taken off it, is noticed where there is a /proc.
/// When the kernel gives no more watches for that, a kRescan says so; it is
/// tried again with a back-off, a kRescan each time, the last without problem.
/// `on_event` runs on the poller's thread and must not block; a kRescan comes
/// first. No event comes after the destructor has returned.
class DirectoryWatcher {
 public:
  using OnEvent = std::function<void(const DirectoryEvent&)>;
  /// `options` are for tests.
  ///   ResourceExhausted  the kernel gives no inotify instance, or no watch
  static absl::StatusOr<std::unique_ptr<DirectoryWatcher>> Start(
      Poller& poller, std::filesystem::path directory, OnEvent on_event,
      WatchOptions options = {});
  virtual ~DirectoryWatcher() = default;

  /// To be called on the poller's thread.
  virtual WatchedPlace place() const = 0;
};

}  // namespace devmgr::watcher
