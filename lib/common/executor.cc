// SPDX-License-Identifier: Apache-2.0
#include "common/executor.h"

#include <pthread.h>

#include <thread>
#include <utility>

namespace devmgr {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

class ThreadExecutorImpl final : public ThreadExecutor {
 public:
  explicit ThreadExecutorImpl(const char* name) {
    thread_ = std::thread([this] { Run(); });
    pthread_setname_np(thread_.native_handle(), name);
    thread_id_ = thread_.get_id();
  }
  ~ThreadExecutorImpl() override { Stop(); }

  void Post(Task task) override {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    changed_.NotifyOne();
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
    return std::this_thread::get_id() == thread_id_;
  }

  TimePoint Now() const override { return std::chrono::steady_clock::now(); }

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
  /// Takes the next task; false when there is nothing left and we stop.
  bool Next(Task* task) {
    MutexLock lock(mutex_);
    for (;;) {
      if (!tasks_.empty()) {
        *task = std::move(tasks_.front());
        tasks_.pop_front();
        return true;
      }
      if (stopping_) return false;
      if (timers_.empty()) {
        changed_.Wait(mutex_);
        continue;
      }
      const auto first = timers_.begin();
      if (first->first.first <= Now()) {
        *task = std::move(first->second);
        timers_.erase(first);
        return true;
      }
      const TimePoint due = first->first.first;
      changed_.WaitUntil(mutex_, due);
    }
  }

  void Run() {
    Task task;
    while (Next(&task)) {
      task();
      task = nullptr;
    }
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ DEVMGR_GUARDED_BY(mutex_);
  std::map<std::pair<TimePoint, TimerId>, Task> timers_
      DEVMGR_GUARDED_BY(mutex_);
  TimerId last_timer_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
  std::thread::id thread_id_;
};

}  // namespace

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
  task();
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
    task();
    RunPending();
  }
}

std::size_t ManualExecutor::timers() const {
  MutexLock lock(mutex_);
  return timers_.size();
}

}  // namespace devmgr
