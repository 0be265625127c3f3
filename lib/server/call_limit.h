// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"
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

/// The same for many clients: none of them takes more than its share, and so
/// keeps the others out. Thread-safe.
class ClientCallLimit {
 public:
  ClientCallLimit(int most_of_one, int most)
      : most_of_one_(most_of_one), all_(most) {}

  /// As of CallLimit. ResourceExhausted: there are as many already, of this
  /// client, which it names, or of all.
  absl::StatusOr<std::shared_ptr<void>> Take(const std::string& client) {
    const MutexLock lock(taken_->mutex);
    const auto known = taken_->of_clients.find(client);
    if (known != taken_->of_clients.end() && known->second >= most_of_one_) {
      return ResourceExhaustedError(
          "{} calls of {} are waiting for an answer already", most_of_one_,
          client);
    }
    DEVMGR_ASSIGN_OR_RETURN(std::shared_ptr<void> place, all_.Take());
    ++taken_->of_clients[client];
    return std::shared_ptr<void>(
        nullptr, [taken = taken_, client, place = std::move(place)](void*) {
          const MutexLock lock_of_end(taken->mutex);
          const auto counted = taken->of_clients.find(client);
          if (--counted->second == 0) taken->of_clients.erase(counted);
        });
  }

 private:
  struct Taken {
    Mutex mutex;
    /// Those that have calls.
    std::map<std::string, int> of_clients DEVMGR_GUARDED_BY(mutex);
  };

  const int most_of_one_;
  CallLimit all_;
  /// Calls may outlive this.
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace devmgr::server
