// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace devmgr {

/// How much of a processor one source of messages may take. A source that
/// behaves is never held up, whatever comes in a burst; one that sends without
/// end gets its share of us, and no more. Thread-bound.
class WorkBudget {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  struct Options {
    Duration burst =
        std::chrono::milliseconds(500);  ///< Of work, after a quiet time.
    int percent = 20;                    ///< Of a processor, for long.
  };

  WorkBudget() = default;
  explicit WorkBudget(Options options) : options_(options) {}

  /// Counts `work` that is done at `now`. How long to wait before more is taken
  /// in; zero while the budget lasts.
  Duration Spend(TimePoint now, Duration work) {
    const Duration refilled = (now - last_) / 100 * options_.percent;
    spent_ = std::max(Duration::zero(), spent_ - refilled) + work;
    last_ = now;
    if (spent_ <= options_.burst) return Duration::zero();
    return (spent_ - options_.burst) / options_.percent * 100;
  }

 private:
  Options options_;
  Duration spent_{0};
  TimePoint last_{};
};

/// About what it costs to take in a message about so many devices: 60,000 of
/// them take some 65 ms.
inline WorkBudget::Duration CostOfDevices(std::size_t devices) {
  return std::chrono::microseconds(200) +
         std::chrono::microseconds(1) * static_cast<std::int64_t>(devices);
}

}  // namespace devmgr
