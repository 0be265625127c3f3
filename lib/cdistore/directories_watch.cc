// SPDX-License-Identifier: Apache-2.0
#include "cdistore/directories_watch.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::cdistore {
namespace {

using std::chrono::steady_clock;
using watcher::DirectoryEvent;

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
      back_off_(options_.watch.first_retry, options_.watch.max_retry),
      watched_(options_.watch,
               [this](std::size_t, const DirectoryEvent& event) {
                 OnEvent(event);
               }) {}

void DirectoriesWatch::Start() {
  const absl::Status status = Begin();
  if (status.ok()) return;
  for (std::size_t i = 0; i < options_.directories.size(); ++i) {
    watched_.NoteProblem(i, MessageOf(status));
  }
}

void DirectoriesWatch::Stop() {
  if (poller_ == nullptr) return;
  // From here on no timer starts watchers.
  if (timer_ != nullptr) timer_->Stop();
  watched_.DropAll();
  poller_.reset();
}

absl::Status DirectoriesWatch::Begin() {
  DEVMGR_ASSIGN_OR_RETURN(poller_, Poller::Start("devmgr-cdi"));
  const std::future<void> tried = tried_.emplace().get_future();
  DEVMGR_ASSIGN_OR_RETURN(timer_,
                          PollTimer::Start(*poller_, [this] { OnTimer(); }));
  Wake();
  tried.wait();
  return absl::OkStatus();
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

void DirectoriesWatch::OnEvent(const DirectoryEvent& event) {
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
    const bool was_watched = watched_.IsWatched(i);
    if (!anew[i] && was_watched) continue;
    const absl::Status status =
        watched_.Watch(*poller_, i, options_.directories[i]);
    watched_.NoteProblem(i, MessageOf(status));
    changed = changed || was_watched != status.ok();
    failed = failed || !status.ok();
  }
  if (!failed) {
    back_off_.Reset();
    return changed;
  }
  MutexLock lock(mutex_);
  retry_at_ = steady_clock::now() + back_off_.Next();
  return changed;
}

void DirectoriesWatch::Arm() {
  if (timer_ == nullptr) return;  // It could not be made.
  std::optional<Time> due = look_at_;
  if (retry_at_.has_value() && (!due.has_value() || *retry_at_ < *due)) {
    due = retry_at_;
  }
  if (due.has_value()) {
    timer_->Set(*due - steady_clock::now());
  } else {
    timer_->Clear();
  }
}

}  // namespace devmgr::cdistore
