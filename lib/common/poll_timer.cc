// SPDX-License-Identifier: Apache-2.0
#include "common/poll_timer.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "common/status.h"

namespace devmgr {

absl::StatusOr<std::unique_ptr<PollTimer>> PollTimer::Start(
    Poller& poller, std::function<void()> on_due) {
  UniqueFd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a timer");
  const int timer = fd.get();
  std::unique_ptr<PollTimer> made(new PollTimer(poller, std::move(fd)));
  DEVMGR_ASSIGN_OR_RETURN(
      made->watch_,
      poller.Watch(timer, EPOLLIN,
                   [timer, on_due = std::move(on_due)](std::uint32_t) {
                     std::uint64_t expirations = 0;
                     // It may have been set anew meanwhile.
                     if (::read(timer, &expirations, sizeof(expirations)) < 0) {
                       return;
                     }
                     on_due();
                   }));
  return made;
}

PollTimer::PollTimer(Poller& poller, UniqueFd timer)
    : poller_(poller), timer_(std::move(timer)) {}

void PollTimer::Stop() {
  if (watch_ != 0) poller_.Unwatch(std::exchange(watch_, 0));
}

void PollTimer::Set(std::chrono::nanoseconds delay) {
  delay = std::max(delay, std::chrono::nanoseconds(1));
  itimerspec when{};
  when.it_value.tv_sec = delay.count() / 1'000'000'000;
  when.it_value.tv_nsec = delay.count() % 1'000'000'000;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void PollTimer::Clear() {
  const itimerspec never{};
  ::timerfd_settime(timer_.get(), 0, &never, nullptr);
}

}  // namespace devmgr
