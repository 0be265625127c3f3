// SPDX-License-Identifier: Apache-2.0
//
// What follows from the answer to a write, and when it is tried again.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "source/api/api_status.h"
#include "source/api/retry_delay.h"

namespace devmgr::apiserver {

/// What an answer to a write means for what is to be written.
enum class WriteOutcome {
  kDone,
  kMissing,       ///< 404: the object, or its collection, is not there.
  kExists,        ///< 409 AlreadyExists: it was made before.
  kConflict,      ///< Another 409: it is not what it was when it was read.
  kInvalid,       ///< 400, 413, 415, 422: it is not taken as it is.
  kUnauthorized,  ///< 401.
  kThrottled,     ///< 429.
  kRefused,       ///< 403 and other 4xx: an administrator has to change it.
  kFailed,        ///< 5xx: the server is not well.
};

WriteOutcome OutcomeOf(const ApiStatus& status);

/// When a write that did not go well is tried again. A conflict is followed at
/// once by another try, up to five times 10 ms apart; the first 401 at once;
/// all else by a delay as in reading. A server that asks for time gets it.
/// Knows no clock. Thread-bound.
class WriteRetry {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  static constexpr int kQuickTries = 5;
  static constexpr Duration kQuick{10};

  explicit WriteRetry(Random random);

  /// How long to wait.
  Duration After(TimePoint now, WriteOutcome outcome,
                 std::optional<std::chrono::seconds> retry_after = {});
  void OnDone(TimePoint now);

 private:
  const Random random_;
  RetryDelay failed_;
  RetryDelay refused_;
  int conflicts_ = 0;     // In a row.
  int unauthorized_ = 0;  // In a row.
};

}  // namespace devmgr::apiserver
