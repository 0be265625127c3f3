// SPDX-License-Identifier: Apache-2.0
//
// The cost of an evaluation, unit for unit as cel-go and the Kubernetes library
// count it. lib/cel/README.md has the rules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/ast.h"
#include "cel/value.h"

namespace devmgr::cel {

constexpr std::uint64_t kListCost = 10;
constexpr std::uint64_t kMapCost = 30;
/// The cost of reading a string, per character, and of a pattern, per
/// character.
constexpr double kStringFactor = 0.1;
constexpr double kPatternFactor = 0.25;
/// The limit for the cost of a selector: CELSelectorExpressionMaxCost of
/// Kubernetes.
constexpr std::uint64_t kDefaultCostLimit = 1'000'000;

/// How the cost of a call follows from its arguments and its result.
enum class CostRule {
  kOne,
  kResultList,       ///< The size of the resulting list.
  kTargetList,       ///< The size of the target, a list.
  kFlatten,          ///< The size of the target times the depth.
  kCompareElements,  ///< All elements of the target with each other.
  kCompareKeys,      ///< The same for the second argument.
  kSets,             ///< Each element of one set with each of the other.
  kSetsTwice,
  kTraversal,    ///< The target and all that it holds.
  kPlainTarget,  ///< Characters of the target; an optional has the size 1.
  kPlainTargetTwice,
  kPlainResultTwice,
  kPlainPattern,  ///< The target and the pattern; an optional has the size 1.
  kPattern,
  kTarget,    ///< Characters of the target.
  kArgument,  ///< Characters of the second argument.
  kList,      ///< The number of elements of the second argument.
  kSmaller,   ///< The smaller one of two operands.
  kEqual,     ///< The same, but 1 for quantities and versions.
  kSum,       ///< Both operands.
  kProduct,   ///< The target times the second argument.
};

/// The rule for calls of `function`. `overload` is empty when several overloads
/// fit the types of the arguments.
CostRule CostRuleOf(std::string_view function, std::string_view overload);

/// The cost of a call of a function with this rule.
std::uint64_t CallCost(CostRule rule, std::span<const Value> args,
                       const Value& result);

/// Counts the cost of one evaluation. A call costs nothing when one of its
/// arguments was not evaluated. To find that out, the tracker keeps a stack of
/// the steps that were evaluated, as cel-go does. Since it works as cel-go's
/// does, it is inexact in the same way: the rounds of a loop leave steps on the
/// stack, and a later call may take such a step for its own argument, and then
/// costs what cel-go makes it cost.
class CostTracker {
 public:
  /// The number of each step that is pushed must be less than `ids`.
  CostTracker(std::uint64_t limit, std::size_t ids)
      : limit_(limit), on_stack_(ids) {
    stack_.reserve(kUsualSteps);
  }

  void Add(std::uint64_t cost) { cost_ += cost; }
  void Remove(std::uint64_t cost) { cost_ -= cost; }
  /// Removes `id`, and all steps above it, from the stack. Returns false, and
  /// changes nothing, when `id` is not on the stack.
  bool Drop(ExprId id);
  void Push(ExprId id);

  std::uint64_t cost() const { return cost_; }
  bool IsOverLimit() const { return cost_ > limit_; }

 private:
  static constexpr std::size_t kUsualSteps = 32;

  std::uint64_t cost_ = 0;
  std::uint64_t limit_;
  std::vector<ExprId> stack_;
  std::vector<std::uint32_t> on_stack_;  ///< How often, by id.
};

}  // namespace devmgr::cel
