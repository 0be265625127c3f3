// SPDX-License-Identifier: Apache-2.0
//
// How often peers may have something done: some times at once, and then in a
// rhythm.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace devmgr::peer {

struct RateOptions {
  int burst = 20;                             ///< At once, after a quiet time.
  std::chrono::milliseconds interval{1'000};  ///< Of one more each.
};

/// Knows no clock. Thread-bound.
class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateLimit(RateOptions options) : options_(options) {}

  /// False: it is to be refused, and counts as if it had not been asked for.
  bool Take(TimePoint now) {
    // As if each had its slot: the next one may be that far ahead of now.
    const TimePoint next = std::max(next_, now) + options_.interval;
    if (next > now + options_.burst * options_.interval) return false;
    next_ = next;
    return true;
  }
  /// There is nothing to remember.
  bool IsBlank(TimePoint now) const { return next_ <= now; }

 private:
  RateOptions options_;
  TimePoint next_{};
};

/// One limit for each name, and one for all of them together. Keeps only what
/// it has to remember.
class RateLimits {
 public:
  RateLimits(RateOptions each, RateOptions all) : each_(each), all_(all) {}

  bool Take(const std::string& name, RateLimit::TimePoint now) {
    const auto known = names_.find(name);
    RateLimit limit = known != names_.end() ? known->second : RateLimit(each_);
    if (!limit.Take(now) || !all_.Take(now)) return false;
    // Here, and so not for what is refused.
    std::erase_if(
        names_, [now](const auto& other) { return other.second.IsBlank(now); });
    names_.insert_or_assign(name, limit);
    return true;
  }
  std::size_t size() const { return names_.size(); }

 private:
  const RateOptions each_;
  RateLimit all_;
  std::map<std::string, RateLimit> names_;
};

}  // namespace devmgr::peer
