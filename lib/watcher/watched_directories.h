// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "common/poller.h"
#include "watcher/directory_watcher.h"

namespace devmgr::watcher {

/// Several directories that are watched, each under a key, and why changes in
/// them may go unnoticed. All of it is for the poller's thread, except for
/// Problems and NoteProblem, which are thread-safe.
template <typename Key>
class WatchedDirectories {
 public:
  /// As DirectoryWatcher::OnEvent. The problem of a kRescan is noted by then.
  using OnEvent = std::function<void(const Key&, const DirectoryEvent&)>;

  WatchedDirectories(WatchOptions options, OnEvent on_event)
      : options_(std::move(options)), on_event_(std::move(on_event)) {}

  /// Begins to watch, anew if it does already; a kRescan follows. A failure is
  /// not noted. `poller` is borrowed until this is dropped.
  ///   ResourceExhausted  the kernel gives no inotify instance, or no watch
  absl::Status Watch(Poller& poller, const Key& key,
                     const std::filesystem::path& directory) {
    watchers_.erase(key);
    auto watcher = DirectoryWatcher::Start(
        poller, directory,
        [this, key](const DirectoryEvent& event) {
          if (event.kind == DirectoryEvent::Kind::kRescan) {
            NoteProblem(key, event.problem);
          }
          on_event_(key, event);
        },
        options_);
    if (!watcher.ok()) return watcher.status();
    watchers_.emplace(key, *std::move(watcher));
    return absl::OkStatus();
  }

  bool IsWatched(const Key& key) const { return watchers_.count(key) > 0; }

  WatchedPlace PlaceOf(const Key& key) const {
    const auto found = watchers_.find(key);
    return found == watchers_.end() ? WatchedPlace{} : found->second->place();
  }

  /// After this no event of it comes; its problem stays.
  void Drop(const Key& key) { watchers_.erase(key); }
  void DropAll() { watchers_.clear(); }

  /// Drops all but those for which `is_wanted(key)`, with their problems.
  template <typename IsWanted>
  void Keep(const IsWanted& is_wanted) {
    const auto is_over = [&](const auto& entry) {
      return !is_wanted(entry.first);
    };
    std::erase_if(watchers_, is_over);
    MutexLock lock(mutex_);
    std::erase_if(problems_, is_over);
  }

  /// Empty: there is none any more.
  void NoteProblem(const Key& key, const std::string& problem) {
    MutexLock lock(mutex_);
    if (problem.empty()) {
      problems_.erase(key);
    } else {
      problems_[key] = problem;
    }
  }

  std::map<Key, std::string> Problems() const {
    MutexLock lock(mutex_);
    return problems_;
  }

 private:
  const WatchOptions options_;
  const OnEvent on_event_;
  std::map<Key, std::unique_ptr<DirectoryWatcher>> watchers_;
  mutable Mutex mutex_;
  std::map<Key, std::string> problems_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::watcher
