// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

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
                  ///< or when the directory itself appeared, went or was
                  ///< swapped.
    kAppeared,    ///< Created or renamed into the directory.
    kChanged,     ///< A writer closed the file.
    kWriting,     ///< Written to by somebody who has not closed it yet.
    kAttributes,  ///< Mode, owner or times differ: it may have become readable.
    kVanished,    ///< Deleted or renamed away.
  };
  Kind kind = Kind::kRescan;
  std::string name;  ///< File name; empty with kRescan.
};

/// Watches one directory (not what lies below it) through inotify. The
/// directory may not exist yet, may vanish and come back, and may be reached
/// through symbolic links that are swapped: its parents are watched for that.
/// `on_event` runs on the poller's thread and must not block; a kRescan comes
/// first. No event comes after the destructor has returned.
class DirectoryWatcher {
 public:
  using OnEvent = std::function<void(const DirectoryEvent&)>;
  static absl::StatusOr<std::unique_ptr<DirectoryWatcher>> Start(
      Poller& poller, std::filesystem::path directory, OnEvent on_event);
  virtual ~DirectoryWatcher() = default;
};

}  // namespace devmgr::watcher
