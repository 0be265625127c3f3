// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/retry_delay.h"

namespace devmgr::apiserver {

/// Which version of resource.k8s.io is used: the newest that the server lists
/// and that we read. It knows no sockets and no clock: it says which request is
/// due, and is given the answer. Thread-bound.
class Discovery {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How often it asks while nothing fits.
  static constexpr std::chrono::minutes kPeriod{10};

  enum class State {
    kUnknown,     // No answer yet.
    kServed,      // `version` says which.
    kNotServed,   // The group is not there: no DRA by the server.
    kUnreadable,  // It is, in versions that are not read or have no objects.
  };

  Discovery(Random random, TimePoint now)
      : delay_(std::move(random), RetryDelay::kLast), due_(now) {}

  std::optional<ApiRequest> Next(TimePoint now);
  /// When Next is to be called; nothing: there is no need to ask.
  std::optional<TimePoint> WakeAt() const { return due_; }
  void OnAnswer(TimePoint now, const ResponseHead& head, std::string_view body);
  void OnFailure(TimePoint now, const std::string& error);

  /// The connection is another one, or something has changed.
  void AskAgain(TimePoint now);
  /// The server does not know a collection of the version in use.
  void OnNotServed(TimePoint now);
  bool TakeRefused() { return std::exchange(refused_, false); }

  State state() const { return state_; }
  /// Empty unless the state is kServed.
  const std::string& version() const { return version_; }
  const std::string& last_error() const { return last_error_; }

 private:
  void Choose(TimePoint now, const std::set<std::string>& listed);
  void Set(TimePoint now, State state, std::string version);

  RetryDelay delay_;
  std::optional<TimePoint> due_;
  bool is_asking_ = false;
  bool ask_again_ = false;  // As soon as the answer is there.
  State state_ = State::kUnknown;
  std::string version_;
  /// Listed, but without the objects; until the next period.
  std::set<std::string> without_objects_;
  bool refused_ = false;
  int unauthorized_in_a_row_ = 0;
  std::string last_error_;
};

}  // namespace devmgr::apiserver
