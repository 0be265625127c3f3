// SPDX-License-Identifier: Apache-2.0
#include "common/executor.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace devmgr {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// What a task may need. Threads of others are made with as little as 100 KB.
constexpr std::size_t kStackForTasks = std::size_t{256} * 1024;

/// The stack of the calling thread, as far as it may grow.
struct Stack {
  Stack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* base = nullptr;
    std::size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &base, &bytes) == 0) {
      low = reinterpret_cast<std::uintptr_t>(base);
      high = low + bytes;
    }
    pthread_attr_destroy(&attributes);
  }
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
};

/// Whether the calling thread can run tasks besides its own work. One that is
/// on a stack which is not its thread's, as fibers are, cannot.
bool HasStackForTasks() {
  thread_local const Stack stack;
  const auto here =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here < stack.high && here > stack.low + kStackForTasks;
}

class ThreadExecutorImpl final : public ThreadExecutor {
 public:
  explicit ThreadExecutorImpl(const char* name) {
    thread_ = std::thread([this] { Run(); });
    pthread_setname_np(thread_.native_handle(), name);
  }
  ~ThreadExecutorImpl() override { Stop(); }

  void Post(Task task) override {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    WakeOneLocked();
  }

  TimerId PostAfter(std::chrono::milliseconds delay, Task task) override {
    MutexLock lock(mutex_);
    if (stopping_) return 0;
    const TimerId id = ++last_timer_;
    timers_.emplace(std::pair(Now() + delay, id), std::move(task));
    changed_.NotifyOne();
    return id;
  }

  void Cancel(TimerId timer) override {
    Task dropped;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->first.second != timer) continue;
      dropped = std::move(it->second);
      timers_.erase(it);
      return;
    }
  }

  bool IsCurrent() const override {
    return std::this_thread::get_id() == runner_;
  }

  TimePoint Now() const override { return std::chrono::steady_clock::now(); }

  void RunUntilFinished(
      const std::function<void(Task finish)>& begin) override {
    const auto helper = std::make_shared<Helper>();
    const bool helps = HasStackForTasks();
    if (helps) {
      MutexLock lock(mutex_);
      helpers_.push_back(helper.get());
    }
    begin([this, helper] { Finish(helper); });
    if (!helps) {
      MutexLock lock(mutex_);
      while (!helper->finished) helper->changed.Wait(mutex_);
      return;
    }
    Task task;
    while (NextOf(*helper, &task)) RunTask(&task);
  }

  void Stop() override {
    std::map<std::pair<TimePoint, TimerId>, Task> dropped;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      dropped.swap(timers_);
      changed_.NotifyOne();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  /// A thread in RunUntilFinished.
  struct Helper {
    bool finished = false;
    CondVar changed;
  };

  void Finish(const std::shared_ptr<Helper>& helper) {
    if (IsCurrent()) {
      finished_.push_back(helper);
      return;
    }
    MutexLock lock(mutex_);
    FinishLocked(*helper);
  }

  void FinishLocked(Helper& helper) DEVMGR_REQUIRES(mutex_) {
    helper.finished = true;
    helper.changed.NotifyOne();
  }

  /// A task was posted, or may be run again: one thread looks for it. A thread
  /// that runs one now looks afterwards; one that waits anyway is as good as
  /// our own, and is the one that wants the result.
  void WakeOneLocked() DEVMGR_REQUIRES(mutex_) {
    if (is_running_) return;
    if (helpers_.empty()) {
      changed_.NotifyOne();
    } else {
      helpers_.back()->changed.NotifyOne();
    }
  }

  /// Takes what is to be run now, if it may be run now.
  bool TakeLocked(Task* task) DEVMGR_REQUIRES(mutex_) {
    if (is_running_) return false;
    if (!tasks_.empty()) {
      *task = std::move(tasks_.front());
      tasks_.pop_front();
    } else if (!timers_.empty() && timers_.begin()->first.first <= Now()) {
      *task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
    } else {
      return false;
    }
    is_running_ = true;
    runner_ = std::this_thread::get_id();
    return true;
  }

  /// Until a task comes or a timer is due. While another thread runs a task
  /// there is nothing to be had before it ends.
  void WaitLocked(CondVar& changed) DEVMGR_REQUIRES(mutex_) {
    if (is_running_ || timers_.empty()) {
      changed.Wait(mutex_);
    } else {
      const TimePoint due = timers_.begin()->first.first;
      changed.WaitUntil(mutex_, due);
    }
  }

  void RunTask(Task* task) {
    Perform(*task);
    *task = nullptr;
    const auto finished = std::exchange(finished_, {});
    runner_ = std::thread::id();
    MutexLock lock(mutex_);
    is_running_ = false;
    for (const auto& helper : finished) FinishLocked(*helper);
  }

  /// The next task for our own thread; false when there is nothing left and we
  /// stop.
  bool Next(Task* task) {
    MutexLock lock(mutex_);
    while (!TakeLocked(task)) {
      if (stopping_ && tasks_.empty() && !is_running_) return false;
      is_blocked_ = is_running_;
      WaitLocked(changed_);
      is_blocked_ = false;
    }
    return true;
  }

  /// The same for a thread that waits; false when it has what it waited for.
  bool NextOf(Helper& helper, Task* task) {
    MutexLock lock(mutex_);
    for (;;) {
      if (helper.finished) break;
      if (TakeLocked(task)) return true;
      if (is_blocked_) changed_.NotifyOne();
      WaitLocked(helper.changed);
    }
    std::erase(helpers_, &helper);
    if (is_blocked_ || stopping_) changed_.NotifyOne();
    if (!tasks_.empty()) WakeOneLocked();
    return false;
  }

  void Run() {
    Task task;
    while (Next(&task)) RunTask(&task);
  }

  Mutex mutex_;
  CondVar changed_;  ///< For our own thread.
  bool stopping_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool is_running_ DEVMGR_GUARDED_BY(mutex_) = false;  ///< A task.
  /// Our own thread came while another one ran a task: it knows of no timer.
  bool is_blocked_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::vector<Helper*> helpers_ DEVMGR_GUARDED_BY(mutex_);
  std::deque<Task> tasks_ DEVMGR_GUARDED_BY(mutex_);
  std::map<std::pair<TimePoint, TimerId>, Task> timers_
      DEVMGR_GUARDED_BY(mutex_);
  TimerId last_timer_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::atomic<std::thread::id> runner_;  ///< Of the task that runs.
  /// Those that the task which runs has finished. Tasks only.
  std::vector<std::shared_ptr<Helper>> finished_;
  std::thread thread_;
};

}  // namespace

void Executor::Afterwards(Task task) {
  if (!performs_) return task();
  afterwards_.push_back(std::move(task));
}

void Executor::Perform(const Task& task) {
  performs_ = true;
  task();
  if (publish_) publish_();
  // Each may have something to be done after it, too.
  while (!afterwards_.empty()) {
    for (const Task& next : std::exchange(afterwards_, {})) next();
  }
  performs_ = false;
}

std::unique_ptr<ThreadExecutor> ThreadExecutor::Start(const char* name) {
  return std::make_unique<ThreadExecutorImpl>(name);
}

void ManualExecutor::Post(Task task) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
}

TimerId ManualExecutor::PostAfter(std::chrono::milliseconds delay, Task task) {
  MutexLock lock(mutex_);
  if (stopped_) return 0;
  const TimerId id = ++last_timer_;
  timers_.emplace(DueKey(now_ + delay, id), std::move(task));
  return id;
}

void ManualExecutor::Cancel(TimerId timer) {
  Task dropped;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  for (auto it = timers_.begin(); it != timers_.end(); ++it) {
    if (it->first.second != timer) continue;
    dropped = std::move(it->second);
    timers_.erase(it);
    return;
  }
}

std::chrono::steady_clock::time_point ManualExecutor::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

void ManualExecutor::RunUntilFinished(
    const std::function<void(Task finish)>& begin) {
  const auto finished = std::make_shared<bool>(false);
  begin([finished] { *finished = true; });
  while (!*finished && RunOne()) {
  }
}

void ManualExecutor::Stop() {
  RunPending();
  std::map<DueKey, Task> dropped;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  stopped_ = true;
  dropped.swap(timers_);
}

bool ManualExecutor::RunOne() {
  Task task;
  {
    MutexLock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  Perform(task);
  return true;
}

int ManualExecutor::RunPending() {
  int ran = 0;
  while (RunOne()) ++ran;
  return ran;
}

void ManualExecutor::Advance(std::chrono::milliseconds duration) {
  RunPending();
  const TimePoint end = Now() + duration;
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      const auto first = timers_.begin();
      if (first == timers_.end() || first->first.first > end) {
        now_ = end;
        break;
      }
      now_ = first->first.first;
      task = std::move(first->second);
      timers_.erase(first);
    }
    Perform(task);
    RunPending();
  }
}

std::size_t ManualExecutor::timers() const {
  MutexLock lock(mutex_);
  return timers_.size();
}

}  // namespace devmgr
