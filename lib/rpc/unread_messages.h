// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: messages of a stream that came before they were asked
// for.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "common/work_budget.h"
#include "rpc/connection.h"

namespace devmgr::rpc {

/// Keeps the newest message, or all of them. Not thread-safe.
class UnreadMessages {
 public:
  using TimePoint = WorkBudget::TimePoint;
  using Duration = WorkBudget::Duration;
  using Messages = std::vector<grpc::ByteBuffer>;

  /// Of messages that are kept to be joined, with what keeping them costs.
  static constexpr std::size_t kMaxBytes = 256 * 1024;
  /// Of reading without decoding.
  static constexpr WorkBudget::Options kBudget{std::chrono::milliseconds(100),
                                               10};

  /// So many are read one after the other; then other streams have their turn.
  static constexpr int kAtOnce = 8;
  static constexpr std::chrono::milliseconds kPause{1};

  /// With kWait nothing is ever kept.
  explicit UnreadMessages(Unread unread, WorkBudget::Options budget = kBudget)
      : unread_(unread), reading_(budget) {}

  bool empty() const { return kept_.empty(); }
  /// No message may be put in before the next Take.
  bool full() const {
    return unread_ == Unread::kWait ||
           (unread_ == Unread::kJoin && bytes_ >= kMaxBytes);
  }

  /// Takes in a message, which is empty afterwards; not while full. How long to
  /// wait before the next one is read.
  Duration Put(grpc::ByteBuffer& message, TimePoint now);

  /// What was kept, to be joined; not while empty. A message that made it too
  /// much stays for the next time.
  Messages Take();

 private:
  const Unread unread_;
  WorkBudget reading_;
  TimePoint last_{};
  int in_a_row_ = 0;
  Messages kept_;
  std::size_t bytes_ = 0;
};

}  // namespace devmgr::rpc
