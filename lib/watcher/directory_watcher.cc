// SPDX-License-Identifier: Apache-2.0
#include "watcher/directory_watcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/back_off.h"
#include "common/poll_timer.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "watcher/path_chain.h"

namespace devmgr::watcher {
namespace {

using Kind = DirectoryEvent::Kind;

/// What is read at once. More comes with the poller's next round, so that a
/// busy directory does not keep others waiting.
constexpr std::size_t kBufferBytes = 16 * 1024;

/// Not the function itself: its type would become a symbol that the library
/// exports.
constexpr auto kAddInotifyWatch = [](int inotify, const char* path,
                                     std::uint32_t mask) {
  return inotify_add_watch(inotify, path, mask);
};

std::optional<Kind> KindOf(std::uint32_t mask) {
  if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return Kind::kAppeared;
  if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return Kind::kVanished;
  if ((mask & IN_CLOSE_WRITE) != 0) return Kind::kChanged;
  if ((mask & IN_MODIFY) != 0) return Kind::kWriting;
  if ((mask & IN_ATTRIB) != 0) return Kind::kAttributes;
  return std::nullopt;
}

/// Polls as exceptional whenever something was mounted or unmounted.
constexpr char kMountInfo[] = "/proc/self/mountinfo";

/// All but construction and destruction happens on the poller's thread.
class DirectoryWatcherImpl final : public DirectoryWatcher {
 public:
  DirectoryWatcherImpl(Poller& poller, UniqueFd inotify,
                       const std::filesystem::path& directory, OnEvent on_event,
                       const WatchOptions& options)
      : poller_(poller),
        inotify_(std::move(inotify)),
        mounts_(::open(kMountInfo, O_RDONLY | O_CLOEXEC)),
        on_event_(std::move(on_event)),
        chain_(inotify_.get(), directory,
               options.add_watch ? options.add_watch : kAddInotifyWatch),
        back_off_(options.first_retry, options.max_retry) {}

  ~DirectoryWatcherImpl() override {
    poller_.Unwatch(mounts_watch_);
    if (timer_ != nullptr) timer_->Stop();
    poller_.Unwatch(inotify_watch_);
  }

  absl::Status Run() {
    DEVMGR_RETURN_IF_ERROR(chain_.Resolve());
    DEVMGR_ASSIGN_OR_RETURN(
        inotify_watch_,
        poller_.Watch(inotify_.get(), EPOLLIN, [this](std::uint32_t) {
          Begin();
          ReadEvents();
        }));
    DEVMGR_ASSIGN_OR_RETURN(timer_,
                            PollTimer::Start(poller_, [this] { OnTimer(); }));
    if (mounts_.valid()) {
      DEVMGR_ASSIGN_OR_RETURN(
          mounts_watch_, poller_.Watch(mounts_.get(), EPOLLPRI,
                                       [this](std::uint32_t) { OnMounts(); }));
    }
    // At first, to begin on the poller's thread.
    timer_->Set(std::chrono::nanoseconds(0));
    return absl::OkStatus();
  }

  WatchedPlace place() const override {
    return {chain_.end(), chain_.end_path()};
  }

 private:
  void Begin() {
    if (std::exchange(begun_, true)) return;
    Rescan("");
  }

  void Rescan(std::string problem) {
    on_event_(DirectoryEvent{Kind::kRescan, "", std::move(problem)});
  }

  void OnTimer() {
    Begin();
    if (!problem_.empty()) ResolveAgain(false);
  }

  /// inotify does not tell of what is mounted over a directory.
  void OnMounts() {
    Begin();
    const WatchedPlace before = place();
    const bool was_whole = problem_.empty();
    Resolve();
    if (place() != before || was_whole != problem_.empty()) Rescan(problem_);
  }

  void ReadEvents() {
    alignas(inotify_event) std::array<char, kBufferBytes> buffer;
    const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());
    bool path_changed = false;
    bool lost = false;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        lost = true;
      } else if (Handle(event, event.len == 0 ? "" : name)) {
        path_changed = true;
      }
    }
    if (path_changed || lost) ResolveAgain(lost);
  }

  /// True when the path may lead elsewhere now.
  bool Handle(const inotify_event& event, std::string name) {
    const PathChain::Meaning meaning =
        chain_.Interpret(event.wd, event.mask, name);
    if (meaning.in_end) {
      if (const std::optional<Kind> kind = KindOf(event.mask)) {
        on_event_(DirectoryEvent{*kind, std::move(name), ""});
      }
    }
    return meaning.path_changed;
  }

  void Resolve() {
    problem_.clear();
    if (const absl::Status status = chain_.Resolve(); !status.ok()) {
      problem_ = MessageOf(status);
      timer_->Set(back_off_.Next());
    } else {
      back_off_.Reset();
    }
  }

  void ResolveAgain(bool lost) {
    const bool was_there = chain_.end() >= 0;
    const bool was_whole = problem_.empty();
    Resolve();
    // Who is not told of changes looks at least whenever we tried again.
    const bool is_whole = problem_.empty();
    if (was_there || chain_.end() >= 0 || lost || !was_whole || !is_whole) {
      Rescan(problem_);
    }
  }

  Poller& poller_;
  const UniqueFd inotify_;
  const UniqueFd mounts_;
  const OnEvent on_event_;
  Poller::WatchId inotify_watch_ = 0;
  Poller::WatchId mounts_watch_ = 0;

  PathChain chain_;
  bool begun_ = false;
  std::string problem_;  ///< Why not all of the path is watched.
  BackOff back_off_;
  std::unique_ptr<PollTimer> timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryWatcher>> DirectoryWatcher::Start(
    Poller& poller, std::filesystem::path directory, OnEvent on_event,
    WatchOptions options) {
  if (directory.empty()) {
    return InvalidArgumentError("the directory to watch has no name");
  }
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(directory, error);
  if (error) {
    return ErrnoStatus(error.value(),
                       fmt::format("cannot watch '{}'", directory.string()));
  }
  UniqueFd inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify.valid()) {
    return ResourceExhaustedError("cannot watch '{}': no inotify instance: {}",
                                  directory.string(), ErrnoText(errno));
  }
  auto watcher = std::make_unique<DirectoryWatcherImpl>(
      poller, std::move(inotify), absolute, std::move(on_event), options);
  DEVMGR_RETURN_IF_ERROR(watcher->Run());
  return watcher;
}

}  // namespace devmgr::watcher
