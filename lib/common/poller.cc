// SPDX-License-Identifier: Apache-2.0
#include "common/poller.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include "common/mutex.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr {
namespace {

/// What epoll reports for our own wake-up; watches count from 1.
constexpr std::uint64_t kWakeUp = 0;

class PollerImpl final : public Poller {
 public:
  PollerImpl(UniqueFd epoll, UniqueFd wake_up)
      : epoll_(std::move(epoll)), wake_up_(std::move(wake_up)) {}

  ~PollerImpl() override {
    // Cannot fail: the counter is at 0 and only written here.
    eventfd_write(wake_up_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Run(const char* name) {
    DEVMGR_RETURN_IF_ERROR(AddToEpoll(wake_up_.get(), EPOLLIN, kWakeUp));
    thread_ = std::thread([this] { Loop(); });
    pthread_setname_np(thread_.native_handle(), name);
    return absl::OkStatus();
  }

  absl::StatusOr<WatchId> Watch(int fd, std::uint32_t events,
                                Ready ready) override {
    // The lock is held over epoll_ctl so that an event that comes at once
    // finds its entry.
    MutexLock lock(mutex_);
    const WatchId id = ++last_watch_;
    DEVMGR_RETURN_IF_ERROR(AddToEpoll(fd, events, id));
    watches_.emplace(
        id, Entry{fd, std::make_shared<const Ready>(std::move(ready))});
    return id;
  }

  void Unwatch(WatchId watch) override {
    {
      std::shared_ptr<const Ready> dropped;  // destroyed after the lock
      MutexLock lock(mutex_);
      const auto it = watches_.find(watch);
      if (it != watches_.end()) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.fd, nullptr);
        dropped = std::move(it->second.ready);
        watches_.erase(it);
      }
    }
    if (watch == 0 || std::this_thread::get_id() == thread_.get_id()) return;
    MutexLock lock(mutex_);
    while (running_ == watch) finished_.Wait(mutex_);
  }

 private:
  struct Entry {
    int fd;
    std::shared_ptr<const Ready> ready;
  };

  absl::Status AddToEpoll(int fd, std::uint32_t events, std::uint64_t id) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
      return absl::OkStatus();
    }
    return ErrnoStatus(errno, fmt::format("cannot watch descriptor {}", fd));
  }

  void Loop() {
    std::array<epoll_event, 64> events;
    for (;;) {
      const int count =
          epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 == kWakeUp) return;
        Dispatch(events[i].data.u64, events[i].events);
      }
    }
  }

  void Dispatch(WatchId watch, std::uint32_t events) {
    std::shared_ptr<const Ready> ready;
    {
      MutexLock lock(mutex_);
      const auto it = watches_.find(watch);
      if (it == watches_.end()) return;  // unwatched since epoll_wait
      ready = it->second.ready;
      running_ = watch;
    }
    (*ready)(events);
    // What the function captured must be gone when Unwatch returns.
    ready.reset();
    MutexLock lock(mutex_);
    running_ = 0;
    finished_.NotifyAll();
  }

  const UniqueFd epoll_;
  const UniqueFd wake_up_;

  Mutex mutex_;
  CondVar finished_;
  WatchId last_watch_ DEVMGR_GUARDED_BY(mutex_) = 0;
  WatchId running_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::map<WatchId, Entry> watches_ DEVMGR_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Start(const char* name) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "cannot make an epoll set");
  UniqueFd wake_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_up.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  auto poller =
      std::make_unique<PollerImpl>(std::move(epoll), std::move(wake_up));
  DEVMGR_RETURN_IF_ERROR(poller->Run(name));
  return poller;
}

}  // namespace devmgr
