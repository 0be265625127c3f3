// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <memory>

#include "common/status.h"

namespace devmgr::server {

/// How many calls of a service are taken and not answered yet. Thread-safe.
class CallLimit {
 public:
  explicit CallLimit(int most) : most_(most) {}

  /// Counts a call for as long as a copy of what it returns is there, also
  /// when this is gone. ResourceExhausted: there are as many already.
  absl::StatusOr<std::shared_ptr<void>> Take() {
    if (calls_->fetch_add(1) >= most_) {
      calls_->fetch_sub(1);
      return ResourceExhaustedError(
          "{} calls are waiting for an answer already", most_);
    }
    return std::shared_ptr<void>(
        nullptr, [calls = calls_](void*) { calls->fetch_sub(1); });
  }

 private:
  const int most_;
  const std::shared_ptr<std::atomic<int>> calls_ =
      std::make_shared<std::atomic<int>>(0);
};

}  // namespace devmgr::server
