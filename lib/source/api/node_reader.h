// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/retry_delay.h"

namespace devmgr::apiserver {

/// Reads the UID of the Node object, by which a source notices that its server
/// is that of another cluster. Knows no sockets and no clock. Thread-bound.
class NodeReader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  NodeReader(const std::string& node, Random random);

  /// The UID is in doubt from now on, and is asked for.
  void AskAgain(TimePoint now);
  /// The request that is due, if one is.
  std::optional<ApiRequest> Next(TimePoint now);
  std::optional<TimePoint> WakeAt() const { return due_; }
  void OnAnswer(TimePoint now, const ResponseHead& head, std::string_view body);
  void OnFailure(TimePoint now, const std::string& error);
  bool TakeRefused() { return std::exchange(refused_, false); }

  /// It was answered since it was asked for: the UID is known, or the server
  /// does not tell it (403), or has no such node (404).
  bool IsSettled() const { return is_settled_; }
  /// As it was known last; empty: it never was.
  const std::string& uid() const { return uid_; }
  const std::string& last_error() const { return last_error_; }

 private:
  const std::string path_;
  RetryDelay delay_;
  std::optional<TimePoint> due_;
  bool is_asking_ = false;
  bool ask_again_ = false;
  bool is_settled_ = false;
  bool refused_ = false;
  std::string uid_;
  std::string last_error_;
};

}  // namespace devmgr::apiserver
