// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace devmgr {

/// How long to wait before each next attempt: twice as long every time, up to a
/// limit. Knows no clock. Thread-bound.
class BackOff {
 public:
  using Duration = std::chrono::milliseconds;

  BackOff(Duration first, Duration last)
      : first_(first), last_(last), next_(first) {}

  /// For the attempt that is due now; the one after it waits longer.
  Duration Next() {
    const Duration delay = next_;
    next_ = std::min(next_ * 2, last_);
    return delay;
  }
  /// What Next would return.
  Duration next() const { return next_; }
  /// The last attempt was good: the next one waits as little as the first.
  void Reset() { next_ = first_; }

 private:
  const Duration first_;
  const Duration last_;
  Duration next_;
};

}  // namespace devmgr
