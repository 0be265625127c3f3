// SPDX-License-Identifier: Apache-2.0
#include "rpc/unread_messages.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace devmgr::rpc {
namespace {

/// What gRPC needs to hold a message, beside its bytes.
constexpr std::size_t kHoldingBytes = 256;

/// Twice what it costs to read a message and to drop it: what gRPC does for
/// each, and the copying.
WorkBudget::Duration CostOfReading(std::size_t bytes) {
  return std::chrono::microseconds(10) +
         std::chrono::nanoseconds(1) * static_cast<std::int64_t>(bytes);
}

}  // namespace

UnreadMessages::Duration UnreadMessages::Put(grpc::ByteBuffer& message,
                                             TimePoint now) {
  const std::size_t bytes = message.Length();
  if (unread_ == Unread::kKeepNewest) {
    kept_.clear();
    bytes_ = 0;
  }
  kept_.emplace_back().Swap(&message);
  bytes_ += kHoldingBytes + bytes;
  message.Clear();
  if (now - last_ >= kPause) in_a_row_ = 0;
  last_ = now;
  const Duration pause = reading_.Spend(now, CostOfReading(bytes));
  if (++in_a_row_ < kAtOnce) return pause;
  in_a_row_ = 0;
  return std::max<Duration>(pause, kPause);
}

UnreadMessages::Messages UnreadMessages::Take() {
  Messages taken = std::exchange(kept_, {});
  const bool is_too_much = bytes_ > kMaxBytes && taken.size() > 1;
  bytes_ = 0;
  if (is_too_much) {
    bytes_ = kHoldingBytes + taken.back().Length();
    kept_.push_back(taken.back());
    taken.pop_back();
  }
  return taken;
}

}  // namespace devmgr::rpc
