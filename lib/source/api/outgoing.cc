// SPDX-License-Identifier: Apache-2.0
#include "source/api/outgoing.h"

#include <algorithm>
#include <utility>

namespace devmgr::apiserver {

WriteOutcome OutcomeOf(const ApiStatus& status) {
  if (status.code >= 200 && status.code < 300) return WriteOutcome::kDone;
  switch (status.code) {
    case 400:
    case 413:
    case 415:
    case 422:
      return WriteOutcome::kInvalid;
    case 401:
      return WriteOutcome::kUnauthorized;
    case 404:
      return WriteOutcome::kMissing;
    case 409:
      return status.reason == "AlreadyExists" ? WriteOutcome::kExists
                                              : WriteOutcome::kConflict;
    case 429:
      return WriteOutcome::kThrottled;
    default:
      return status.code >= 400 && status.code < 500 ? WriteOutcome::kRefused
                                                     : WriteOutcome::kFailed;
  }
}

WriteRetry::WriteRetry(Random random)
    : random_(random),
      failed_(random, RetryDelay::kLast),
      refused_(std::move(random), RetryDelay::kLastRefused) {}

WriteRetry::Duration WriteRetry::After(
    TimePoint now, WriteOutcome outcome,
    std::optional<std::chrono::seconds> retry_after) {
  const bool is_conflict = outcome == WriteOutcome::kConflict;
  const bool is_unauthorized = outcome == WriteOutcome::kUnauthorized;
  conflicts_ = is_conflict ? conflicts_ + 1 : 0;
  unauthorized_ = is_unauthorized ? unauthorized_ + 1 : 0;
  Duration delay{0};
  if (is_conflict && conflicts_ < kQuickTries) {
    // 10 ms, more or less by a tenth.
    delay = Duration(9 + static_cast<Duration::rep>(random_() * 3));
  } else if (!is_unauthorized || unauthorized_ > 1) {
    const bool is_refused =
        outcome == WriteOutcome::kRefused || outcome == WriteOutcome::kMissing;
    delay = (is_refused ? refused_ : failed_).OnFailure(now);
  }
  return std::max<Duration>(delay,
                            retry_after.value_or(std::chrono::seconds()));
}

void WriteRetry::OnDone(TimePoint now) {
  conflicts_ = 0;
  unauthorized_ = 0;
  failed_.OnGood(now);
  refused_.OnGood(now);
}

}  // namespace devmgr::apiserver
