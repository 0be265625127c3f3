// SPDX-License-Identifier: Apache-2.0
#include "cel/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "cel/one_of.h"

namespace devmgr::cel {
namespace {

/// Rounds up. What does not fit 64 bits is the largest number.
std::uint64_t Ceil(double cost) {
  cost = std::ceil(cost);
  return cost >= 18446744073709551616.0
             ? std::numeric_limits<std::uint64_t>::max()
             : static_cast<std::uint64_t>(cost);
}

double Size(const Value& value) { return static_cast<double>(SizeOf(value)); }
/// The size of an optional is 1 here, as in the Kubernetes library.
double PlainSize(const Value& value) {
  return static_cast<double>(SizeOf(value, false));
}

std::uint64_t PatternCost(double text, double pattern) {
  return Ceil((1.0 + text) * kStringFactor) * Ceil(pattern * kPatternFactor);
}

/// The cost of looking at all of a value: a tenth of the bytes of each string,
/// rounded down; the sum over the elements of lists and maps; 1 for any other
/// value. Stops after `visits` values: nested lists that share their parts may
/// have any number of them.
std::uint64_t TraversalCost(const Value& value, std::uint64_t& visits) {
  if (visits == 0) return 0;
  --visits;
  if (value.Is<String>()) {
    return static_cast<std::uint64_t>(static_cast<double>(value.text().size()) *
                                      kStringFactor);
  }
  if (const auto* bytes = value.As<Bytes>()) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes->data->size()) *
                                      kStringFactor);
  }
  std::uint64_t cost = 0;
  if (const auto* list = value.As<List>()) {
    for (const Value& element : (*list)->elements) {
      cost += TraversalCost(element, visits);
    }
    return cost;
  }
  if (const auto* map = value.As<Map>()) {
    for (const MapEntry& entry : (*map)->entries()) {
      cost +=
          TraversalCost(entry.key, visits) + TraversalCost(entry.value, visits);
    }
    return cost;
  }
  return 1;
}

std::uint64_t TraversalCost(const Value& value) {
  std::uint64_t visits = 10'000'000;
  const std::uint64_t cost = TraversalCost(value, visits);
  return visits > 0 ? cost : std::numeric_limits<std::uint64_t>::max() / 2;
}

/// The functions whose cost Kubernetes defines. They are found by name,
/// whatever the overload is.
std::optional<CostRule> KubernetesRule(std::string_view function) {
  constexpr std::array<std::string_view, 7> kTraversals = {
      "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"};
  constexpr std::array<std::string_view, 8> kScans = {
      "lowerAscii", "upperAscii", "substring", "trim",
      "quantity",   "isQuantity", "semver",    "isSemver"};
  constexpr std::array<std::string_view, 12> kSimple = {
      "sign",          "asInteger",  "isInteger", "asApproximateFloat",
      "isGreaterThan", "isLessThan", "compareTo", "add",
      "sub",           "major",      "minor",     "patch"};
  if (IsOneOf(function, kTraversals)) return CostRule::kTraversal;
  if (IsOneOf(function, kScans)) return CostRule::kPlainTarget;
  if (function == "replace" || function == "split") {
    return CostRule::kPlainTargetTwice;
  }
  if (function == "join") return CostRule::kPlainResultTwice;
  if (function == "find" || function == "findAll") {
    return CostRule::kPlainPattern;
  }
  if (IsOneOf(function, kSimple)) return CostRule::kOne;
  return std::nullopt;
}

std::uint64_t ListCost(double factor, double size) {
  if (factor < 0) factor = 1;
  const double cost = size * factor;
  return (cost >= 1e19 ? std::numeric_limits<std::uint64_t>::max() / 2
                       : static_cast<std::uint64_t>(cost)) +
         1 + kListCost;
}

/// The cost of comparing each element of a list with each other one.
std::uint64_t SelfCompareCost(const Value& value) {
  const auto* list = value.As<List>();
  if (list == nullptr || (*list)->elements.empty()) return ListCost(2, 0);
  const Value& first = (*list)->elements.front();
  const bool has_text = first.Is<String>() || first.Is<Bytes>();
  const double size = Size(value);
  return ListCost(2.0 + (has_text ? kStringFactor : 0), size * size);
}

/// The extensions of lists and sets. They are found by overload.
std::optional<CostRule> ExtensionRule(std::string_view overload) {
  if (overload == "list_slice" || overload == "lists_range" ||
      overload == "list_reverse") {
    return CostRule::kResultList;
  }
  if (overload == "list_flatten") return CostRule::kTargetList;
  if (overload == "list_flatten_int") return CostRule::kFlatten;
  if (overload == "list_distinct" ||
      (overload.starts_with("list_") && overload.ends_with("_sort"))) {
    return CostRule::kCompareElements;
  }
  if (overload.ends_with("_sortByAssociatedKeys")) {
    return CostRule::kCompareKeys;
  }
  if (overload == "list_sets_equivalent_list") return CostRule::kSetsTwice;
  if (overload.starts_with("list_sets_")) return CostRule::kSets;
  return std::nullopt;
}

bool IsTextOrder(std::string_view overload) {
  constexpr std::array<std::string_view, 8> kNames = {
      "less_string",           "less_equals_string",  "greater_string",
      "greater_equals_string", "less_bytes",          "less_equals_bytes",
      "greater_bytes",         "greater_equals_bytes"};
  return IsOneOf(overload, kNames);
}

/// The functions of the language. They are found by overload.
CostRule StandardRule(std::string_view overload) {
  constexpr std::array<std::string_view, 4> kScans = {
      "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"};
  if (overload == "starts_with_string" || overload == "ends_with_string") {
    return CostRule::kArgument;
  }
  if (IsOneOf(overload, kScans)) return CostRule::kTarget;
  if (overload == "in_list") return CostRule::kList;
  if (overload == "equals") return CostRule::kEqual;
  if (overload == "not_equals" || IsTextOrder(overload)) {
    return CostRule::kSmaller;
  }
  if (overload == "add_string" || overload == "add_bytes") {
    return CostRule::kSum;
  }
  if (overload == "matches" || overload == "matches_string") {
    return CostRule::kPattern;
  }
  if (overload == "contains_string") return CostRule::kProduct;
  return CostRule::kOne;
}

std::uint64_t SetsCost(std::span<const Value> args, double factor) {
  return 1 + static_cast<std::uint64_t>(Size(args[0]) * Size(args[1]) * factor);
}

std::uint64_t FlattenCost(std::span<const Value> args) {
  const auto* depth = args[1].As<std::int64_t>();
  return ListCost(depth == nullptr ? 1 : static_cast<double>(*depth),
                  Size(args[0]));
}

std::uint64_t SmallerCost(std::span<const Value> args) {
  return Ceil(std::min(Size(args[0]), Size(args[1])) * kStringFactor);
}

}  // namespace

CostRule CostRuleOf(std::string_view function, std::string_view overload) {
  if (const auto rule = ExtensionRule(overload)) return *rule;
  if (const auto rule = KubernetesRule(function)) return *rule;
  return StandardRule(overload);
}

std::uint64_t CallCost(CostRule rule, std::span<const Value> args,
                       const Value& result) {
  switch (rule) {
    case CostRule::kOne:
      return 1;
    case CostRule::kResultList:
      return ListCost(1, Size(result));
    case CostRule::kTargetList:
      return ListCost(1, Size(args[0]));
    case CostRule::kFlatten:
      return FlattenCost(args);
    case CostRule::kCompareElements:
      return SelfCompareCost(args[0]);
    case CostRule::kCompareKeys:
      return SelfCompareCost(args[1]);
    case CostRule::kSets:
      return SetsCost(args, 1);
    case CostRule::kSetsTwice:
      return SetsCost(args, 2);
    case CostRule::kTraversal:
      return TraversalCost(args[0]);
    case CostRule::kPlainTarget:
      return Ceil(PlainSize(args[0]) * kStringFactor);
    case CostRule::kPlainTargetTwice:
      return Ceil(PlainSize(args[0]) * 2 * kStringFactor);
    case CostRule::kPlainResultTwice:
      return Ceil(PlainSize(result) * 2 * kStringFactor);
    case CostRule::kPlainPattern:
      return PatternCost(PlainSize(args[0]), PlainSize(args[1]));
    case CostRule::kPattern:
      return PatternCost(Size(args[0]), Size(args[1]));
    case CostRule::kTarget:
      return Ceil(Size(args[0]) * kStringFactor);
    case CostRule::kArgument:
      return Ceil(Size(args[1]) * kStringFactor);
    case CostRule::kList:
      return SizeOf(args[1]);
    case CostRule::kSmaller:
      return SmallerCost(args);
    case CostRule::kEqual: {
      const bool is_simple =
          args[0].Is<QuantityValue>() || args[0].Is<SemverValue>();
      return is_simple ? 1 : SmallerCost(args);
    }
    case CostRule::kSum:
      return Ceil((Size(args[0]) + Size(args[1])) * kStringFactor);
    case CostRule::kProduct:
      return Ceil(Size(args[0]) * kStringFactor) *
             Ceil(Size(args[1]) * kStringFactor);
  }
  return 1;
}

void CostTracker::Push(ExprId id) {
  stack_.push_back(id);
  ++on_stack_[static_cast<std::size_t>(id)];
}

bool CostTracker::Drop(ExprId id) {
  if (on_stack_[static_cast<std::size_t>(id)] == 0) return false;
  for (ExprId top = kNoExpr; top != id;) {
    top = stack_.back();
    stack_.pop_back();
    --on_stack_[static_cast<std::size_t>(top)];
  }
  return true;
}

}  // namespace devmgr::cel
