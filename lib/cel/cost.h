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
/// Of traversing a string, per character; of a pattern, per character of it.
constexpr double kStringFactor = 0.1;
constexpr double kPatternFactor = 0.25;
/// What a selector may cost: CELSelectorExpressionMaxCost.
constexpr std::uint64_t kDefaultCostLimit = 1'000'000;

/// What a call of `function` costs. `overload` is empty when the types of the
/// arguments leave more than one.
std::uint64_t CallCost(std::string_view function, std::string_view overload,
                       std::span<const Value> args, const Value& result);

/// Counts. A call is free when one of its arguments was not evaluated, which is
/// seen by a stack of what was: the same one as cel-go's, whose odd moments
/// (what a loop leaves behind is found again) are part of the cost.
class CostTracker {
 public:
  /// `ids`: all that is pushed is less.
  CostTracker(std::uint64_t limit, std::size_t ids)
      : limit_(limit), on_stack_(ids) {}

  void Add(std::uint64_t cost) { cost_ += cost; }
  void Remove(std::uint64_t cost) { cost_ -= cost; }
  /// Takes `id`, and what lies above it, off the stack. False when it is not
  /// there.
  bool Drop(ExprId id);
  /// The same for arguments, last first. False at the first that is missing.
  bool DropAll(std::span<const ExprId> ids);
  void Push(ExprId id);

  std::uint64_t cost() const { return cost_; }
  bool IsOverLimit() const { return cost_ > limit_; }

 private:
  std::uint64_t cost_ = 0;
  std::uint64_t limit_;
  std::vector<ExprId> stack_;
  std::vector<std::uint32_t> on_stack_;  ///< How often, by id.
};

}  // namespace devmgr::cel
