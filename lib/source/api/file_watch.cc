// SPDX-License-Identifier: Apache-2.0
#include "source/api/file_watch.h"

#include <utility>

#include "common/status.h"

namespace devmgr::apiserver {
namespace {

/// The link that a kubelet swaps when a secret has changed.
constexpr char kSwappedLink[] = "..data";

}  // namespace

struct FileWatch::Shared {
  std::function<void()> changed;  // Empty: the watch is gone.
  TimerId timer = 0;
  /// A task is on its way to the executor.
  std::atomic<bool> is_posted{false};
};

FileWatch::FileWatch(Executor& executor, std::function<void()> changed)
    : executor_(executor), shared_(std::make_shared<Shared>()) {
  shared_->changed = std::move(changed);
}

FileWatch::~FileWatch() {
  watchers_.clear();
  poller_.reset();
  shared_->changed = nullptr;
  executor_.Cancel(shared_->timer);
}

absl::Status FileWatch::Watch(const std::set<std::filesystem::path>& files) {
  if (files == files_) return absl::OkStatus();
  files_ = files;
  watchers_.clear();
  if (files.empty()) return absl::OkStatus();
  if (poller_ == nullptr) {
    DEVMGR_ASSIGN_OR_RETURN(poller_, Poller::Start("devmgr-apifile"));
  }
  std::map<std::filesystem::path, std::set<std::string>> names;
  for (const std::filesystem::path& file : files) {
    const std::filesystem::path full = std::filesystem::absolute(file);
    names[full.parent_path()].insert(full.filename().string());
  }
  absl::Status result;
  for (auto& [directory, of_it] : names) {
    result.Update(WatchDirectory(directory, std::move(of_it)));
  }
  return result;
}

absl::Status FileWatch::WatchDirectory(const std::filesystem::path& directory,
                                       std::set<std::string> names) {
  using Event = watcher::DirectoryEvent;
  auto on_event = [this, shared = shared_,
                   names = std::move(names)](const Event& event) {
    if (event.kind == Event::Kind::kWriting) return;
    if (event.kind != Event::Kind::kRescan && event.name != kSwappedLink &&
        names.count(event.name) == 0) {
      return;
    }
    if (shared->is_posted.exchange(true)) return;
    executor_.Post([&executor = executor_, shared] {
      shared->is_posted = false;
      if (!shared->changed) return;
      executor.Cancel(shared->timer);
      shared->timer = executor.PostAfter(kQuiet, [shared] {
        if (shared->changed) shared->changed();
      });
    });
  };
  auto watcher = watcher::DirectoryWatcher::Start(*poller_, directory,
                                                  std::move(on_event));
  if (!watcher.ok()) return watcher.status();
  watchers_[directory] = *std::move(watcher);
  return absl::OkStatus();
}

}  // namespace devmgr::apiserver
