// SPDX-License-Identifier: Apache-2.0
//
// std::mutex with clang's thread-safety annotations. Not absl::Mutex: the
// packaged Abseil is not instrumented, and ThreadSanitizer reports correct
// code over it as a race.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DEVMGR_TSA(x) __attribute__((x))
#else
#define DEVMGR_TSA(x)
#endif

#define DEVMGR_CAPABILITY(x) DEVMGR_TSA(capability(x))
#define DEVMGR_SCOPED_CAPABILITY DEVMGR_TSA(scoped_lockable)
#define DEVMGR_GUARDED_BY(x) DEVMGR_TSA(guarded_by(x))
#define DEVMGR_REQUIRES(...) DEVMGR_TSA(requires_capability(__VA_ARGS__))
#define DEVMGR_EXCLUDES(...) DEVMGR_TSA(locks_excluded(__VA_ARGS__))
#define DEVMGR_ACQUIRE(...) DEVMGR_TSA(acquire_capability(__VA_ARGS__))
#define DEVMGR_RELEASE(...) DEVMGR_TSA(release_capability(__VA_ARGS__))
#define DEVMGR_ASSERTS(...) DEVMGR_TSA(assert_capability(__VA_ARGS__))
#define DEVMGR_NO_TSA DEVMGR_TSA(no_thread_safety_analysis)

namespace devmgr {

class DEVMGR_CAPABILITY("mutex") Mutex {
 public:
  void Lock() DEVMGR_ACQUIRE() { mutex_.lock(); }
  void Unlock() DEVMGR_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class DEVMGR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DEVMGR_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() DEVMGR_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Wait with the mutex held; it is held again on return. Spurious wake-ups
/// happen: loop over the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) DEVMGR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False when `deadline` passed.
  template <typename TimePoint>
  bool WaitUntil(Mutex& mutex, const TimePoint& deadline)
      DEVMGR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time =
        condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyAll() { condition_.notify_all(); }
  void NotifyOne() { condition_.notify_one(); }

 private:
  std::condition_variable condition_;
};

}  // namespace devmgr
