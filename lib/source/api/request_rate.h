// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace devmgr::apiserver {

/// How many requests may be sent: `burst` at once, and `per_second` as they are
/// used up. Knows no clock. Thread-bound.
class RequestRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  RequestRate(double per_second, int burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  /// False: not now, but at WakeAt.
  bool Take(TimePoint now) {
    Refill(now);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

  /// When the next request may be sent, as seen at `now`.
  TimePoint WakeAt(TimePoint now) {
    Refill(now);
    if (left_ >= 1) return now;
    const std::chrono::duration<double> wait((1 - left_) / per_second_);
    return now + std::chrono::ceil<std::chrono::milliseconds>(wait);
  }

  /// Nothing is used up.
  bool IsFull(TimePoint now) {
    Refill(now);
    return left_ >= burst_;
  }

 private:
  void Refill(TimePoint now) {
    if (last_) {
      const std::chrono::duration<double> passed = now - *last_;
      left_ = std::min<double>(burst_, left_ + passed.count() * per_second_);
    }
    last_ = now;
  }

  const double per_second_;
  const int burst_;
  double left_;
  std::optional<TimePoint> last_;
};

}  // namespace devmgr::apiserver
