// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace devmgr {

/// How long a test waits for what must come. Generous: machines are busy.
inline constexpr std::chrono::seconds kPatience{20};

/// Values that other threads hand to the test, in order.
template <typename T>
class Mailbox {
 public:
  void Put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }

  /// The next value; nothing when none comes within `patience`.
  std::optional<T> Take(std::chrono::milliseconds patience = kPatience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return !values_.empty(); })) {
      return std::nullopt;
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

}  // namespace devmgr
