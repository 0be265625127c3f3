// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "cel/cost.h"
#include "cel/plan.h"
#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

struct EvaluationOptions {
  std::uint64_t cost_limit = kDefaultCostLimit;
  std::uint64_t work_limit = Work::kLimit;
  /// May be null. Once the flag is true, loops end; it is read every hundred
  /// rounds. The flag must outlive the call.
  const std::atomic<bool>* interrupted = nullptr;
  /// Whether an optional selection from a value without fields, as in
  /// `dyn(null).?x`, is an error. The specification demands it; Kubernetes does
  /// not set the option.
  bool strict_presence = false;
};

struct Evaluation {
  enum class End {
    kDone,       ///< `value` is the result. It may be an error of the
                 ///< expression, such as a missing key.
    kCostLimit,  ///< The cost exceeded its limit.
    kWorkLimit,  ///< The expression worked on values that are too large.
    kInterrupted,
  };
  End end = End::kDone;
  Value value;
  std::uint64_t cost = 0;
};

/// Evaluates `plan` with a value for each of its globals, in their order. It is
/// a pure function, so that several threads may use one plan at the same time.
/// Recursion is bounded by the depth of the expression.
Evaluation Evaluate(const Plan& plan, std::span<const Value> globals,
                    const EvaluationOptions& options = {});

}  // namespace devmgr::cel
