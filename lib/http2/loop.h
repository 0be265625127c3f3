// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/unique_fd.h"

namespace devmgr::http2 {

/// Where work for a loop is left, from any thread; outlives the loop, and then
/// drops what comes.
class Mailbox {
 public:
  using Task = std::function<void()>;

  explicit Mailbox(UniqueFd wake_up) : wake_up_(std::move(wake_up)) {}

  void Post(Task task);
  /// From now on the calling thread is the loop's: it need not be woken.
  void Adopt() { reader_ = std::this_thread::get_id(); }
  std::vector<Task> TakeAll();
  /// Drops what is there and what comes.
  void Close();
  int fd() const { return wake_up_.get(); }

 private:
  const UniqueFd wake_up_;
  std::atomic<std::thread::id> reader_;
  Mutex mutex_;
  bool closed_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::vector<Task> tasks_ DEVMGR_GUARDED_BY(mutex_);
};

/// What hears of a descriptor.
class Readable {
 public:
  virtual void OnReady(std::uint32_t events) = 0;

 protected:
  ~Readable() = default;
};

/// Something that ends its life on the loop, but not while others on the stack
/// may still name it.
class Buried {
 public:
  virtual ~Buried() = default;
};

/// One thread's epoll with timers. It sleeps until something happens or a timer
/// is due. All methods but the mailbox's belong to the thread that runs it.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using TimerId = std::uint64_t;  ///< 0 is never a timer.

  static absl::StatusOr<std::unique_ptr<Loop>> Make();

  /// `ready` is borrowed until Unwatch and until the end of this round: events
  /// that were fetched already still come.
  absl::Status Watch(int fd, std::uint32_t events, Readable* ready);
  void Rewatch(int fd, std::uint32_t events, Readable* ready);
  void Unwatch(int fd);

  TimerId At(Clock::time_point time, std::function<void()> task);
  void Cancel(TimerId timer);

  /// Destroys it at the end of this round: the only place where anything that
  /// may be on the stack goes.
  void Bury(std::unique_ptr<Buried> dead) { dead_.push_back(std::move(dead)); }

  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  /// Until Stop.
  void Run();
  void Stop() { stopped_ = true; }

 private:
  Loop(UniqueFd epoll, std::shared_ptr<Mailbox> mailbox)
      : epoll_(std::move(epoll)), mailbox_(std::move(mailbox)) {}

  int MillisecondsToNextTimer() const;
  void RunDueTimers();
  void RunPosted();

  const UniqueFd epoll_;
  const std::shared_ptr<Mailbox> mailbox_;
  bool stopped_ = false;
  TimerId last_timer_ = 0;
  std::map<std::pair<Clock::time_point, TimerId>, std::function<void()>>
      timers_;
  std::map<TimerId, Clock::time_point> timer_times_;
  std::vector<std::unique_ptr<Buried>> dead_;
};

}  // namespace devmgr::http2
