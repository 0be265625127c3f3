// SPDX-License-Identifier: Apache-2.0
//
// Earlier states of the ledger, from the state now and the bounded history.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/status_types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::state {

/// Batches after `after` that the history has, in order, `most` at most.
using ReadHistory = std::function<absl::StatusOr<std::vector<Batch>>(
    std::uint64_t after, std::size_t most)>;

/// That part of `batches`, which are in order.
template <typename Batches>
std::vector<Batch> BatchesAfter(const Batches& batches, std::uint64_t after,
                                std::size_t most) {
  const auto begin = std::upper_bound(
      batches.begin(), batches.end(), after,
      [](std::uint64_t seq, const Batch& batch) { return seq < batch.seq; });
  const auto left = static_cast<std::size_t>(batches.end() - begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(std::min(left, most))};
}

/// A state with the time of its last batch.
struct StateThen {
  State state;
  /// Unix time; 0 when the history does not have that batch.
  std::int64_t time_ms = 0;
};

/// Takes batches back until `now` is the state that held at `at`. Reads no more
/// of the history than that needs, a part at a time; batches that are newer
/// than `now` are passed over.
///   OutOfRange  that batch is yet to come, or the history does not reach back
///               to it; the message says how far it does
///   DataLoss    the history does not lead to `now`
absl::StatusOr<StateThen> StateAt(State now, const LedgerPoint& at,
                                  const ReadHistory& read);

/// The earliest state that the history leads back to.
///   DataLoss  the history does not lead to `now`
absl::StatusOr<State> EarliestState(State now, const ReadHistory& read);

}  // namespace devmgr::state
