// SPDX-License-Identifier: Apache-2.0
#include "cdistore/directories_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "common/status.h"

namespace devmgr::cdistore {
namespace {

using std::chrono::steady_clock;
using watcher::DirectoryEvent;
using watcher::DirectoryWatcher;

/// A file that is not closed yet is no spec yet, and temporary files are none.
/// All other names may matter: links may lead to specs through them.
bool Matters(const DirectoryEvent& event) {
  return event.kind != DirectoryEvent::Kind::kWriting &&
         !event.name.ends_with(".tmp");
}

}  // namespace

DirectoriesWatch::DirectoriesWatch(Options options, std::function<void()> look)
    : options_(std::move(options)),
      look_(std::move(look)),
      watch_anew_(options_.directories.size(), true),
      watchers_(options_.directories.size()) {}

void DirectoriesWatch::Start() {
  const absl::Status status = Begin();
  if (status.ok()) return;
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < options_.directories.size(); ++i) {
    problems_[i] = MessageOf(status);
  }
}

void DirectoriesWatch::Stop() {
  if (poller_ == nullptr) return;
  // From here on no timer starts watchers.
  poller_->Unwatch(timer_watch_);
  watchers_.clear();
  poller_.reset();
}

absl::Status DirectoriesWatch::Begin() {
  timer_.Reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return ErrnoStatus(errno, "cannot make a timer");
  DEVMGR_ASSIGN_OR_RETURN(poller_, Poller::Start("devmgr-cdi"));
  const std::future<void> tried = tried_.emplace().get_future();
  DEVMGR_ASSIGN_OR_RETURN(timer_watch_,
                          poller_->Watch(timer_.get(), EPOLLIN,
                                         [this](std::uint32_t) { OnTimer(); }));
  Wake();
  tried.wait();
  return absl::OkStatus();
}

std::map<std::size_t, std::string> DirectoriesWatch::Problems() const {
  MutexLock lock(mutex_);
  return problems_;
}

void DirectoriesWatch::Wake() {
  MutexLock lock(mutex_);
  look_at_ = steady_clock::now();
  Arm();
}

void DirectoriesWatch::WatchAnew(std::size_t index) {
  MutexLock lock(mutex_);
  watch_anew_[index] = true;
  retry_at_ = steady_clock::now();
  Arm();
}

void DirectoriesWatch::OnTimer() {
  std::uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof(expirations)) < 0) return;
  const bool changed = StartWatchers();
  if (tried_.has_value()) {
    tried_->set_value();
    tried_.reset();
  }
  {
    MutexLock lock(mutex_);
    const bool due =
        changed || (look_at_.has_value() && *look_at_ <= steady_clock::now());
    if (!due) {
      Arm();
      return;
    }
    look_at_.reset();
    first_event_.reset();
    Arm();
  }
  look_();
}

void DirectoriesWatch::OnEvent(std::size_t index, const DirectoryEvent& event) {
  if (event.kind == DirectoryEvent::Kind::kRescan) {
    NoteProblem(index, event.problem);
  }
  if (!Matters(event)) return;
  MutexLock lock(mutex_);
  const Time now = steady_clock::now();
  if (!first_event_.has_value()) first_event_ = now;
  look_at_ = std::min(now + options_.quiet, *first_event_ + options_.latest);
  Arm();
}

bool DirectoriesWatch::StartWatchers() {
  std::vector<bool> anew;
  {
    MutexLock lock(mutex_);
    const bool due =
        !retry_at_.has_value() || *retry_at_ <= steady_clock::now();
    if (!due) return false;
    retry_at_.reset();
    anew = watch_anew_;
    watch_anew_.assign(anew.size(), false);
  }
  bool changed = false;
  bool failed = false;
  for (std::size_t i = 0; i < anew.size(); ++i) {
    if (!anew[i] && watchers_[i] != nullptr) continue;
    const bool was_watched = watchers_[i] != nullptr;
    const bool is_watched = StartWatcher(i);
    changed = changed || was_watched != is_watched;
    failed = failed || !is_watched;
  }
  if (!failed) {
    retry_ = std::chrono::milliseconds(0);
    return changed;
  }
  retry_ = std::clamp(retry_ * 2, options_.watch.first_retry,
                      options_.watch.max_retry);
  MutexLock lock(mutex_);
  retry_at_ = steady_clock::now() + retry_;
  return changed;
}

bool DirectoriesWatch::StartWatcher(std::size_t index) {
  watchers_[index].reset();
  auto watcher = DirectoryWatcher::Start(
      *poller_, options_.directories[index],
      [this, index](const DirectoryEvent& event) { OnEvent(index, event); },
      options_.watch);
  NoteProblem(index, MessageOf(watcher.status()));
  if (!watcher.ok()) return false;
  watchers_[index] = *std::move(watcher);
  return true;
}

void DirectoriesWatch::NoteProblem(std::size_t index,
                                   const std::string& problem) {
  MutexLock lock(mutex_);
  if (problem.empty()) {
    problems_.erase(index);
  } else {
    problems_[index] = problem;
  }
}

void DirectoriesWatch::Arm() {
  std::optional<Time> due = look_at_;
  if (retry_at_.has_value() && (!due.has_value() || *retry_at_ < *due)) {
    due = retry_at_;
  }
  itimerspec when{};
  if (due.has_value()) {
    const auto delay =
        std::max(std::chrono::nanoseconds(1),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(
                     *due - steady_clock::now()));
    when.it_value.tv_sec = delay.count() / 1'000'000'000;
    when.it_value.tv_nsec = delay.count() % 1'000'000'000;
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace devmgr::cdistore
