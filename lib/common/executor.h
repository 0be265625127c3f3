// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace devmgr {

using Task = std::function<void()>;
using TimerId = std::uint64_t;  ///< 0 is never a timer.

/// Runs tasks one after the other, in the order of posting, and timers when
/// they are due. What lives on one executor needs no lock.
/// `Post` may be called from any thread; the other calls too. To clang's
/// analysis of threads it is a capability, which DEVMGR_ASSERT_ON says to be
/// held.
class DEVMGR_CAPABILITY("executor") Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
  virtual TimerId PostAfter(std::chrono::milliseconds delay, Task task) = 0;
  /// A timer that is over, or unknown, is fine.
  virtual void Cancel(TimerId timer) = 0;
  /// True on the thread that runs a task now.
  virtual bool IsCurrent() const = 0;
  /// Monotonic; moves with the timers.
  virtual std::chrono::steady_clock::time_point Now() const = 0;
  /// Calls `begin`, then waits until the task that `begin` was given has been
  /// called, on any thread; when a task of ours calls it, until that one is
  /// over. Meanwhile the calling thread runs tasks, one at a time with the
  /// executor's own: what it waits for costs no wake-up of another thread. With
  /// a small stack it only waits. Not to be called from a task.
  virtual void RunUntilFinished(
      const std::function<void(Task finish)>& begin) = 0;
  /// Runs what is posted already, and drops timers and what is posted from now
  /// on. No task runs afterwards. Not to be called from a task.
  virtual void Stop() = 0;

  /// Has each task, from the one that calls this on, end with `publish`: it
  /// shows others what the task has changed. Null: none does.
  void PublishAfterTasks(Task publish) { publish_ = std::move(publish); }
  /// Runs `task` when the task that calls this is over and what it has changed
  /// is published, as a part of it: for those outside that are notified. In the
  /// order of the calls. At once where no task runs, as in tests.
  void Afterwards(Task task);

 protected:
  /// Runs a task to its end.
  void Perform(const Task& task);

 private:
  // Tasks only.
  bool performs_ = false;
  Task publish_;
  std::vector<Task> afterwards_;
};

/// What DEVMGR_ASSERT_ON says to clang.
inline void SayOn(const Executor& executor) DEVMGR_ASSERTS(executor) {
  (void)executor;
}

/// The first line of each entry that is confined to the thread of `executor`:
/// builds with assertions stop where it is called from another one, and clang
/// takes the executor as held from here on.
#define DEVMGR_ASSERT_ON(executor)  \
  do {                              \
    assert((executor).IsCurrent()); \
    ::devmgr::SayOn(executor);      \
  } while (false)

/// An executor with a thread of its own, which Stop joins. It sleeps without
/// any wake-up while nothing is due, or while threads that wait in
/// RunUntilFinished do its work.
class ThreadExecutor : public Executor {
 public:
  /// `name` shows in tools such as top; at most 15 characters.
  static std::unique_ptr<ThreadExecutor> Start(const char* name);
};

/// An executor that runs on the calling thread, on demand, with a clock that
/// moves on demand. For tests. Post is thread-safe.
class ManualExecutor : public Executor {
 public:
  void Post(Task task) override;
  TimerId PostAfter(std::chrono::milliseconds delay, Task task) override;
  void Cancel(TimerId timer) override;
  bool IsCurrent() const override { return true; }
  std::chrono::steady_clock::time_point Now() const override;
  /// Returns too when no task is left.
  void RunUntilFinished(const std::function<void(Task finish)>& begin) override;
  void Stop() override;

  /// Runs the task that was posted first; false when there is none.
  bool RunOne();
  /// Runs posted tasks until none is left; returns how many ran.
  int RunPending();
  /// Moves the clock, running timers in order of their due time.
  void Advance(std::chrono::milliseconds duration);
  std::size_t timers() const;

 private:
  using DueKey = std::pair<std::chrono::steady_clock::time_point, TimerId>;

  mutable Mutex mutex_;
  std::chrono::steady_clock::time_point now_ DEVMGR_GUARDED_BY(mutex_){};
  bool stopped_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ DEVMGR_GUARDED_BY(mutex_);
  std::map<DueKey, Task> timers_ DEVMGR_GUARDED_BY(mutex_);
  TimerId last_timer_ DEVMGR_GUARDED_BY(mutex_) = 0;
};

}  // namespace devmgr
