// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace devmgr::hostile {

/// How a neighbour was served for a while, and what that while cost.
struct Phase {
  std::vector<std::chrono::nanoseconds> calls;  ///< That succeeded; sorted.
  std::vector<absl::Status> failures;
  std::chrono::nanoseconds time{0};
  std::chrono::nanoseconds processor{0};  ///< Of the whole process.
  long growth_kib = 0;                    ///< Of what is resident.

  /// Of one processor.
  double load() const {
    return static_cast<double>(processor.count()) /
           static_cast<double>(time.count());
  }
  std::chrono::nanoseconds Percentile(int percent) const;
  /// As if both had been one, of which the growth is the larger one.
  void Add(const Phase& other);
};

/// Begins a call that ends with `done`, on any thread.
using StartCall = std::function<void(std::function<void(absl::Status)> done)>;

/// So many calls a phase has at least, unless the neighbour is not served.
inline constexpr std::size_t kLeastCalls = 11;

/// Calls the neighbour for so long, one call after the other, with a pause of
/// two milliseconds; on a machine that is busy otherwise for longer, until it
/// was called kLeastCalls times.
Phase CallFor(std::chrono::milliseconds time, const StartCall& call);

}  // namespace devmgr::hostile
