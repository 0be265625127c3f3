// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/metrics.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace devmgr {

/// A sink that keeps what it got, as texts.
class RecordedMetrics : public MetricsSink {
 public:
  std::vector<std::string> calls() {
    MutexLock lock(mutex_);
    return calls_;
  }
  std::chrono::nanoseconds longest() {
    MutexLock lock(mutex_);
    return longest_;
  }

 protected:
  void Add(std::string call,
           std::chrono::nanoseconds took = std::chrono::nanoseconds(0)) {
    MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
    longest_ = std::max(longest_, took);
  }

 private:
  Mutex mutex_;
  std::vector<std::string> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::chrono::nanoseconds longest_ DEVMGR_GUARDED_BY(mutex_){};
};

}  // namespace devmgr
