// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "common/mutex.h"

namespace devmgr::podresources {

/// How much is kept for clients that have not read it yet, in bytes: a client
/// that asks and never reads makes us grow up to a limit, and takes nothing
/// from others up to that. Thread-safe.
class UnreadAnswers {
 public:
  struct Limits {
    std::size_t of_one = 32 * 1024 * 1024;
    std::size_t of_all = 256 * 1024 * 1024;
  };
  explicit UnreadAnswers(Limits limits) : limits_(limits) {}

  /// Counts the bytes for as long as a copy of what it returns is there, also
  /// when this is gone. One answer is taken of each client whatever its size.
  ///   ResourceExhausted  that would be too much; names the client
  absl::StatusOr<std::shared_ptr<void>> Take(const std::string& client,
                                             std::size_t bytes);

 private:
  struct OfClient {
    std::size_t answers = 0;
    std::size_t bytes = 0;
  };
  struct Kept {
    Mutex mutex;
    /// Those that have answers to read.
    std::map<std::string, OfClient> of_clients DEVMGR_GUARDED_BY(mutex);
    std::size_t of_all DEVMGR_GUARDED_BY(mutex) = 0;
  };

  const Limits limits_;
  /// Answers that are under way may outlive this.
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace devmgr::podresources
