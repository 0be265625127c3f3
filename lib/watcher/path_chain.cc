// SPDX-License-Identifier: Apache-2.0
#include "watcher/path_chain.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr::watcher {
namespace {

/// As many as the kernel follows.
constexpr int kMaxLinks = 40;

/// Names coming, going, or becoming accessible.
constexpr std::uint32_t kNames =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB;
constexpr std::uint32_t kContents = kNames | IN_MODIFY | IN_CLOSE_WRITE;
constexpr std::uint32_t kSelf = IN_DELETE_SELF | IN_MOVE_SELF;
/// The directory is gone: told with IN_DELETE_SELF or by the kernel anyway.
constexpr std::uint32_t kGone = kSelf | IN_UNMOUNT | IN_IGNORED;

}  // namespace

/// One resolution of the path, component by component, as the kernel does it,
/// with a watch set before each look so that no change comes between.
class PathChain::Walk {
 public:
  Walk(int inotify, const std::filesystem::path& path,
       const AddWatch& add_watch)
      : inotify_(inotify), add_watch_(add_watch) {
    Prepend(path);
  }

  void Run() {
    while (!ahead_.empty()) {
      const std::string name = std::move(ahead_.front());
      ahead_.pop_front();
      if (name == "..") {
        // What is behind us holds no links, so this is what the kernel does.
        if (!behind_.empty()) behind_.pop_back();
      } else if (!Enter(name)) {
        return;
      }
    }
    end_ = Add(kContents);
    if (end_ >= 0) end_path_ = Here();
  }

  Names& names() { return names_; }
  int end() const { return end_; }
  const std::string& end_path() const { return end_path_; }
  /// The errno of a watch that is missing for want of something; 0 if none.
  int error() const { return error_; }

 private:
  void Prepend(const std::filesystem::path& path) {
    std::vector<std::string> components;
    for (const std::filesystem::path& component : path.relative_path()) {
      if (!component.empty() && component != ".") {
        components.push_back(component);
      }
    }
    ahead_.insert(ahead_.begin(), components.begin(), components.end());
  }

  /// The directory walked to so far, with a slash at its end.
  std::string Here() const {
    std::string here = "/";
    for (const std::string& name : behind_) here += name + "/";
    return here;
  }

  int Add(std::uint32_t mask) {
    const int watch = add_watch_(inotify_, Here().c_str(),
                                 mask | kSelf | IN_MASK_ADD | IN_ONLYDIR);
    if (watch >= 0) {
      names_[watch];
    } else if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
      error_ = errno;
    }
    return watch;
  }

  /// False when there is no way on.
  bool Enter(const std::string& name) {
    // A directory may be closed to us for reading and still be passable: then
    // its changes go unnoticed, as they must.
    const int watch = Add(kNames);
    if (watch >= 0) names_[watch].insert(name);
    const std::string path = Here() + name;
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return false;
    if (!S_ISLNK(status.st_mode)) {
      behind_.push_back(name);
      return S_ISDIR(status.st_mode);
    }
    std::error_code error;
    const std::filesystem::path target =
        std::filesystem::read_symlink(path, error);
    if (error || ++links_ > kMaxLinks) return false;
    if (target.is_absolute()) behind_.clear();
    Prepend(target);
    return true;
  }

  const int inotify_;
  const AddWatch& add_watch_;
  std::vector<std::string> behind_;
  std::deque<std::string> ahead_;
  int links_ = 0;
  Names names_;
  int end_ = -1;
  std::string end_path_;
  int error_ = 0;
};

PathChain::PathChain(int inotify, std::filesystem::path path,
                     AddWatch add_watch)
    : inotify_(inotify),
      path_(std::move(path)),
      add_watch_(std::move(add_watch)) {}

absl::Status PathChain::Resolve() {
  Walk walk(inotify_, path_, add_watch_);
  walk.Run();
  names_.swap(walk.names());
  end_ = walk.end();
  end_path_ = walk.end_path();
  for (const auto& [watch, names] : walk.names()) {
    if (!names_.contains(watch)) inotify_rm_watch(inotify_, watch);
  }
  if (walk.error() != 0) {
    return ResourceExhaustedError("cannot watch '{}': {}", path_.string(),
                                  ErrnoText(walk.error()));
  }
  return absl::OkStatus();
}

PathChain::Meaning PathChain::Interpret(int watch, std::uint32_t mask,
                                        const std::string& name) const {
  Meaning meaning;
  const auto it = names_.find(watch);
  if (it == names_.end()) return meaning;  // dropped since
  meaning.path_changed = (mask & kGone) != 0 ||
                         ((mask & kNames) != 0 && it->second.contains(name));
  meaning.in_end = watch == end_ && !name.empty();
  return meaning;
}

}  // namespace devmgr::watcher
