// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "common/back_off.h"

namespace devmgr::apiserver {

/// A number in [0, 1).
using Random = std::function<double()>;

/// How long to wait after each failure: twice as long every time up to a limit,
/// each delay stretched by a random factor in [1, 2), so that the nodes of a
/// cluster do not come in step. After two minutes of good service it begins
/// anew. Knows no clock. Thread-bound.
class RetryDelay {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  static constexpr Duration kFirst{800};
  static constexpr Duration kLast = std::chrono::seconds(30);
  /// For what an administrator has to change.
  static constexpr Duration kLastRefused = std::chrono::minutes(5);
  static constexpr std::chrono::minutes kGoodService{2};

  RetryDelay(Random random, Duration last, Duration first = kFirst)
      : random_(std::move(random)), back_off_(first, last) {}

  /// The service is good from now on.
  void OnGood(TimePoint now) {
    if (!good_since_) good_since_ = now;
  }

  Duration OnFailure(TimePoint now) {
    if (good_since_ && now - *good_since_ >= kGoodService) back_off_.Reset();
    good_since_.reset();
    const Duration delay = back_off_.Next();
    return delay + Duration(static_cast<Duration::rep>(
                       random_() * static_cast<double>(delay.count())));
  }

  void Reset() { back_off_.Reset(); }

 private:
  const Random random_;
  BackOff back_off_;
  std::optional<TimePoint> good_since_;
};

}  // namespace devmgr::apiserver
