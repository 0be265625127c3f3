// SPDX-License-Identifier: Apache-2.0
#include "cdistore/cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cdistore/directories_watch.h"
#include "cdistore/scanner.h"
#include "common/mutex.h"
#include "common/snapshot_cell.h"
#include "common/status.h"

namespace devmgr::cdistore {
namespace {

using std::chrono::steady_clock;

/// Between two looks of Registry at directories that cannot be watched.
constexpr std::chrono::milliseconds kLookInterval{100};

/// Problems that one error tells of.
constexpr std::size_t kMostProblems = 20;

struct Content {
  std::shared_ptr<const CdiRegistry> registry =
      std::make_shared<const CdiRegistry>();
  std::vector<CdiDirectoryInfo> directories;
};

/// The scanner hands out one spec again and again while it means the same.
bool IsSame(const CdiSpecFile& a, const CdiSpecFile& b) {
  return a.spec == b.spec && a.priority == b.priority &&
         a.problem == b.problem && a.path == b.path;
}

bool IsSame(const CdiRegistry& registry, const Scan& scan) {
  return registry.unread() == scan.unread &&
         std::equal(registry.files().begin(), registry.files().end(),
                    scan.files.begin(), scan.files.end(),
                    [](const auto& a, const auto& b) { return IsSame(a, b); });
}

absl::Status StatusOf(const CdiRegistry& registry) {
  std::vector<std::string> problems = registry.unread();
  for (const CdiSpecFile& file : registry.files()) {
    if (!file.problem.empty()) {
      problems.push_back(fmt::format("'{}': {}", file.path, file.problem));
    }
  }
  for (const CdiConflict& conflict : registry.conflicts()) {
    if (conflict.is_effective) problems.push_back(conflict.ToString());
  }
  if (problems.empty()) return absl::OkStatus();
  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < kMostProblems; ++i) {
    text += (i == 0 ? "" : "; ") + problems[i];
  }
  if (problems.size() > kMostProblems) {
    text += fmt::format("; and {} more", problems.size() - kMostProblems);
  }
  return FailedPreconditionError("{}", text);
}

class CdiCacheImpl final : public CdiCache {
 public:
  CdiCacheImpl(const CdiCacheOptions& options,
               const watcher::WatchOptions& watch)
      : options_(options), scanner_(options) {
    Look();
    if (!options_.watch) return;
    watch_ = std::make_unique<DirectoriesWatch>(
        DirectoriesWatch::Options{options_.directories, options_.quiet,
                                  options_.latest, watch},
        [this] { OnQuiet(); });
    watch_->Start();
  }

  ~CdiCacheImpl() override {
    if (watch_ != nullptr) watch_->Stop();
  }

  std::shared_ptr<const CdiRegistry> Registry() override {
    if (watch_ != nullptr && MayBeBlind()) {
      if (LookAfter(kLookInterval)) HaveNotified();
    }
    if (watch_ != nullptr) LookAgainInTime();
    return cell_.Get()->registry;
  }

  absl::Status Refresh() override {
    if (Look()) HaveNotified();
    return StatusOf(*cell_.Get()->registry);
  }

  std::vector<CdiDirectoryInfo> Directories() const override {
    std::vector<CdiDirectoryInfo> infos = cell_.Get()->directories;
    if (watch_ == nullptr) return infos;
    std::map<std::size_t, std::string> problems = watch_->Problems();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      infos[i].watch_problem = problems[i];
    }
    return infos;
  }

  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }

 private:
  /// The watch's thread: nothing has changed for a while.
  void OnQuiet() {
    const bool changed = Look();
    if (notify_.exchange(false) || changed) cell_.Notify();
  }

  /// Subscribers are told on the watch's thread.
  void HaveNotified() {
    if (watch_ == nullptr) return;
    notify_ = true;
    watch_->Wake();
  }

  /// Trusts the watch for so long.
  void LookAgainInTime() {
    const auto now = steady_clock::now();
    if (now - trusted_since_.load() < options_.distrust) return;
    trusted_since_ = now;
    watch_->Wake();
  }

  bool MayBeBlind() const {
    return is_unreadable_ || !watch_->Problems().empty();
  }

  /// True when there is something new.
  bool Look() {
    MutexLock lock(mutex_);
    return LookLocked();
  }

  bool LookAfter(std::chrono::milliseconds interval) {
    MutexLock lock(mutex_);
    if (steady_clock::now() - last_look_ < interval) return false;
    return LookLocked();
  }

  bool LookLocked() DEVMGR_REQUIRES(mutex_) {
    const Scan scan = scanner_.Look();
    last_look_ = steady_clock::now();
    WatchAnewLocked(scan);
    const std::shared_ptr<const Content> before = cell_.Get();
    auto now = std::make_shared<Content>();
    now->directories = DirectoriesOf(scan);
    const bool is_same = IsSame(*before->registry, scan);
    if (is_same && now->directories == before->directories) return false;
    now->registry =
        is_same ? before->registry
                : std::make_shared<const CdiRegistry>(scan.files, scan.unread);
    cell_.Put(std::move(now));
    return true;
  }

  /// What we may not read we may not watch either.
  void WatchAnewLocked(const Scan& scan) DEVMGR_REQUIRES(mutex_) {
    bool any = false;
    was_unreadable_.resize(scan.directories.size());
    for (std::size_t i = 0; i < scan.directories.size(); ++i) {
      const bool is_unreadable = scan.directories[i].is_unreadable;
      if (was_unreadable_[i] && !is_unreadable && watch_ != nullptr) {
        watch_->WatchAnew(i);
      }
      was_unreadable_[i] = is_unreadable;
      any = any || is_unreadable;
    }
    is_unreadable_ = any;
  }

  std::vector<CdiDirectoryInfo> DirectoriesOf(const Scan& scan) const {
    std::map<std::size_t, std::string> problems;
    if (watch_ != nullptr) problems = watch_->Problems();
    std::vector<CdiDirectoryInfo> infos;
    for (std::size_t i = 0; i < scan.directories.size(); ++i) {
      infos.push_back({options_.directories[i], static_cast<int>(i),
                       scan.directories[i].files, scan.directories[i].problem,
                       problems[i]});
    }
    return infos;
  }

  // Constant after construction.
  const CdiCacheOptions options_;

  /// One look at a time: held while the disk is read.
  Mutex mutex_;
  Scanner scanner_ DEVMGR_GUARDED_BY(mutex_);
  steady_clock::time_point last_look_ DEVMGR_GUARDED_BY(mutex_);
  std::vector<bool> was_unreadable_ DEVMGR_GUARDED_BY(mutex_);

  std::atomic<steady_clock::time_point> trusted_since_{steady_clock::now()};
  std::atomic<bool> is_unreadable_ = false;  ///< Any of the directories.
  std::atomic<bool> notify_ = false;
  SnapshotCell<Content> cell_;
  std::unique_ptr<DirectoriesWatch> watch_;  ///< Null: none.
};

/// `dir/` and `dir` are the same; a slash at the end would show in paths.
std::filesystem::path WithoutSlash(const std::filesystem::path& directory) {
  const bool has_slash =
      !directory.has_filename() && directory.has_relative_path();
  return has_slash ? directory.parent_path() : directory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CdiCache>> OpenCdiCache(
    CdiCacheOptions options, watcher::WatchOptions watch) {
  for (std::filesystem::path& directory : options.directories) {
    if (directory.empty()) {
      return InvalidArgumentError("a CDI directory has no name");
    }
    directory = WithoutSlash(directory);
  }
  if (options.max_files == 0 || options.max_file_bytes == 0 ||
      options.max_total_bytes == 0) {
    return InvalidArgumentError(
        "max_files, max_file_bytes and max_total_bytes must be positive");
  }
  if (options.quiet.count() < 0 || options.latest < options.quiet) {
    return InvalidArgumentError("quiet must be 0 to latest, not {} of {} ms",
                                options.quiet.count(), options.latest.count());
  }
  if (options.distrust.count() <= 0) {
    return InvalidArgumentError("distrust must be positive, not {} ms",
                                options.distrust.count());
  }
  std::unique_ptr<CdiCache> cache =
      std::make_unique<CdiCacheImpl>(options, watch);
  return cache;
}

}  // namespace devmgr::cdistore

namespace devmgr {

const std::vector<std::filesystem::path>& DefaultCdiSpecDirs() {
  static const std::vector<std::filesystem::path> directories = {
      "/etc/cdi", "/var/run/cdi"};
  return directories;
}

absl::StatusOr<std::unique_ptr<CdiCache>> CdiCache::Open(
    CdiCacheOptions options) {
  return cdistore::OpenCdiCache(std::move(options), {});
}

}  // namespace devmgr
