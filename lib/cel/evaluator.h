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
  /// Borrowed for the call; may be null. Once it is true, loops end. It is
  /// looked at every hundred rounds.
  const std::atomic<bool>* interrupted = nullptr;
  /// Whether it is an error to ask for a field of what can have none, as in
  /// `dyn(null).?x`. The specification wants it; Kubernetes does not set it.
  bool strict_presence = false;
};

struct Evaluation {
  enum class End {
    kDone,       ///< `value` is the result; it may be an error of the
                 ///< expression, as a missing key is.
    kCostLimit,  ///< The expression cost more than it may.
    kWorkLimit,  ///< It worked on values that are too large.
    kInterrupted,
  };
  End end = End::kDone;
  Value value;
  std::uint64_t cost = 0;
};

/// Runs `plan` with a value for each of its globals, in their order. A pure
/// function: any thread may call it, with a plan that others use, too.
/// Recursion is bounded by the depth of the expression.
Evaluation Evaluate(const Plan& plan, std::span<const Value> globals,
                    const EvaluationOptions& options = {});

}  // namespace devmgr::cel
