// SPDX-License-Identifier: Apache-2.0
//
// What one client may cost. Time comes with the calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace devmgr::endpoint {

using TimePoint = std::chrono::steady_clock::time_point;

/// So many requests a second, and at once.
class RequestRate {
 public:
  explicit RequestRate(double per_second)
      : per_second_(per_second), left_(per_second) {}

  /// False when it is too many.
  bool Take(TimePoint now) {
    if (last_ != TimePoint()) {
      const std::chrono::duration<double> passed = now - last_;
      left_ = std::min(per_second_, left_ + passed.count() * per_second_);
    }
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double per_second_;
  double left_;
  TimePoint last_;
};

/// Wrong tokens, by the address that they came from.
class WrongTokens {
 public:
  static constexpr std::size_t kFree = 10;  ///< In a minute.
  static constexpr std::chrono::seconds kDelay{1};

  /// Notes one. After how long it is to be answered.
  std::chrono::milliseconds Note(const std::string& address, TimePoint now) {
    if (counts_.size() >= kMaxAddresses && counts_.count(address) == 0) {
      counts_.clear();
    }
    Count& count = counts_[address];
    if (count.wrong == 0 || now - count.since >= std::chrono::minutes(1)) {
      count = {now, 0};
    }
    return ++count.wrong > kFree ? std::chrono::milliseconds(kDelay)
                                 : std::chrono::milliseconds(0);
  }

 private:
  static constexpr std::size_t kMaxAddresses = 1000;
  struct Count {
    TimePoint since;
    std::size_t wrong = 0;
  };
  std::map<std::string, Count> counts_;
};

}  // namespace devmgr::endpoint
