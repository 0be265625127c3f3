// SPDX-License-Identifier: Apache-2.0
#include "http2/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/status.h"

namespace devmgr::http2 {

void Mailbox::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;  // it is awake, or will be
  }
  // The loop looks here after each event; only others have to wake it. Cannot
  // fail: the counter is small.
  if (reader_.load() != std::this_thread::get_id()) {
    eventfd_write(wake_up_.get(), 1);
  }
}

std::vector<Mailbox::Task> Mailbox::TakeAll() {
  std::vector<Task> tasks;
  MutexLock lock(mutex_);
  tasks.swap(tasks_);
  return tasks;
}

void Mailbox::Close() {
  std::vector<Task> dropped;  // destroyed after the lock
  MutexLock lock(mutex_);
  closed_ = true;
  dropped.swap(tasks_);
}

absl::StatusOr<std::unique_ptr<Loop>> Loop::Make() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "cannot make an epoll set");
  UniqueFd wake_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_up.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  auto mailbox = std::make_shared<Mailbox>(std::move(wake_up));
  std::unique_ptr<Loop> loop(new Loop(std::move(epoll), std::move(mailbox)));
  DEVMGR_RETURN_IF_ERROR(loop->Watch(loop->mailbox_->fd(), EPOLLIN, nullptr));
  return loop;
}

absl::Status Loop::Watch(int fd, std::uint32_t events, Readable* ready) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = ready;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot watch descriptor {}", fd));
}

void Loop::Rewatch(int fd, std::uint32_t events, Readable* ready) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = ready;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::Unwatch(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::At(Clock::time_point time, std::function<void()> task) {
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(time, id), std::move(task));
  timer_times_.emplace(id, time);
  return id;
}

void Loop::Cancel(TimerId timer) {
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

int Loop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - Clock::now();
  // Rounded up, so that it is due when we wake.
  const auto milliseconds =
      std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(
      std::clamp<std::int64_t>(milliseconds, 0, 60 * 60 * 1000));
}

void Loop::RunDueTimers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    timer_times_.erase(due.key().second);
    due.mapped()();
  }
}

void Loop::RunPosted() {
  for (;;) {
    const std::vector<Mailbox::Task> tasks = mailbox_->TakeAll();
    if (tasks.empty()) return;
    for (const Mailbox::Task& task : tasks) task();
  }
}

void Loop::Run() {
  mailbox_->Adopt();
  std::array<epoll_event, 64> events;
  while (!stopped_) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(),
                                 MillisecondsToNextTimer());
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == nullptr) {
        eventfd_t times = 0;
        eventfd_read(mailbox_->fd(), &times);
      } else {
        static_cast<Readable*>(events[i].data.ptr)->OnReady(events[i].events);
      }
      RunPosted();
    }
    RunDueTimers();
    RunPosted();
    dead_.clear();
  }
}

}  // namespace devmgr::http2
