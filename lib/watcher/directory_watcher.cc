// SPDX-License-Identifier: Apache-2.0
#include "watcher/directory_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"
#include "watcher/path_chain.h"

namespace devmgr::watcher {
namespace {

using Kind = DirectoryEvent::Kind;

/// What is read at once. More comes with the poller's next round, so that a
/// busy directory does not keep others waiting.
constexpr std::size_t kBufferBytes = 16 * 1024;

std::optional<Kind> KindOf(std::uint32_t mask) {
  if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return Kind::kAppeared;
  if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return Kind::kVanished;
  if ((mask & IN_CLOSE_WRITE) != 0) return Kind::kChanged;
  if ((mask & IN_MODIFY) != 0) return Kind::kWriting;
  if ((mask & IN_ATTRIB) != 0) return Kind::kAttributes;
  return std::nullopt;
}

/// All but construction and destruction happens on the poller's thread.
class DirectoryWatcherImpl final : public DirectoryWatcher {
 public:
  DirectoryWatcherImpl(Poller& poller, UniqueFd inotify, UniqueFd first,
                       const std::filesystem::path& directory, OnEvent on_event)
      : poller_(poller),
        inotify_(std::move(inotify)),
        first_(std::move(first)),
        on_event_(std::move(on_event)),
        chain_(inotify_.get(), directory) {}

  ~DirectoryWatcherImpl() override {
    poller_.Unwatch(first_watch_);
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
    // Readable from the start, looked at once.
    DEVMGR_ASSIGN_OR_RETURN(first_watch_,
                            poller_.Watch(first_.get(), EPOLLIN | EPOLLONESHOT,
                                          [this](std::uint32_t) { Begin(); }));
    return absl::OkStatus();
  }

 private:
  void Begin() {
    if (std::exchange(begun_, true)) return;
    on_event_(DirectoryEvent{Kind::kRescan, ""});
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
        on_event_(DirectoryEvent{*kind, std::move(name)});
      }
    }
    return meaning.path_changed;
  }

  void ResolveAgain(bool lost) {
    const bool was_there = chain_.end() >= 0;
    // What cannot be watched now is not reported: there is nobody to tell. The
    // rescan at least shows what is there.
    const bool complete = chain_.Resolve().ok();
    if (was_there || chain_.end() >= 0 || lost || !complete) {
      on_event_(DirectoryEvent{Kind::kRescan, ""});
    }
  }

  Poller& poller_;
  const UniqueFd inotify_;
  const UniqueFd first_;
  const OnEvent on_event_;
  Poller::WatchId inotify_watch_ = 0;
  Poller::WatchId first_watch_ = 0;

  PathChain chain_;
  bool begun_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryWatcher>> DirectoryWatcher::Start(
    Poller& poller, std::filesystem::path directory, OnEvent on_event) {
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
  UniqueFd first(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!first.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  auto watcher = std::make_unique<DirectoryWatcherImpl>(
      poller, std::move(inotify), std::move(first), absolute,
      std::move(on_event));
  DEVMGR_RETURN_IF_ERROR(watcher->Run());
  return watcher;
}

}  // namespace devmgr::watcher
