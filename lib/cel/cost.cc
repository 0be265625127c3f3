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
std::optional<std::uint64_t> KubernetesCost(std::string_view function,
                                            std::span<const Value> args,
                                            const Value& result) {
  constexpr std::array<std::string_view, 7> kTraversals = {
      "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"};
  constexpr std::array<std::string_view, 8> kScans = {
      "lowerAscii", "upperAscii", "substring", "trim",
      "quantity",   "isQuantity", "semver",    "isSemver"};
  constexpr std::array<std::string_view, 12> kSimple = {
      "sign",          "asInteger",  "isInteger", "asApproximateFloat",
      "isGreaterThan", "isLessThan", "compareTo", "add",
      "sub",           "major",      "minor",     "patch"};
  if (IsOneOf(function, kTraversals)) return TraversalCost(args[0]);
  if (IsOneOf(function, kScans)) {
    return Ceil(PlainSize(args[0]) * kStringFactor);
  }
  if (function == "replace" || function == "split") {
    return Ceil(PlainSize(args[0]) * 2 * kStringFactor);
  }
  if (function == "join") return Ceil(PlainSize(result) * 2 * kStringFactor);
  if (function == "find" || function == "findAll") {
    return PatternCost(PlainSize(args[0]), PlainSize(args[1]));
  }
  if (IsOneOf(function, kSimple)) return 1;
  const bool is_simple_equality =
      function == "_==_" &&
      (args[0].Is<QuantityValue>() || args[0].Is<SemverValue>());
  return is_simple_equality ? std::optional<std::uint64_t>(1) : std::nullopt;
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
std::optional<std::uint64_t> ExtensionCost(std::string_view overload,
                                           std::span<const Value> args,
                                           const Value& result) {
  if (overload == "list_slice" || overload == "lists_range" ||
      overload == "list_reverse") {
    return ListCost(1, Size(result));
  }
  if (overload == "list_flatten") return ListCost(1, Size(args[0]));
  if (overload == "list_flatten_int") {
    const auto* depth = args[1].As<std::int64_t>();
    return ListCost(depth == nullptr ? 1 : static_cast<double>(*depth),
                    Size(args[0]));
  }
  if (overload == "list_distinct") return SelfCompareCost(args[0]);
  if (overload.starts_with("list_") && overload.ends_with("_sort")) {
    return SelfCompareCost(args[0]);
  }
  if (overload.ends_with("_sortByAssociatedKeys")) {
    return SelfCompareCost(args[1]);
  }
  if (overload.starts_with("list_sets_")) {
    const double factor = overload == "list_sets_equivalent_list" ? 2 : 1;
    return 1 +
           static_cast<std::uint64_t>(Size(args[0]) * Size(args[1]) * factor);
  }
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
std::uint64_t StandardCost(std::string_view overload,
                           std::span<const Value> args) {
  if (overload == "starts_with_string" || overload == "ends_with_string") {
    return Ceil(Size(args[1]) * kStringFactor);
  }
  constexpr std::array<std::string_view, 4> kScans = {
      "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"};
  if (IsOneOf(overload, kScans)) return Ceil(Size(args[0]) * kStringFactor);
  if (overload == "in_list") return SizeOf(args[1]);
  if (overload == "equals" || overload == "not_equals" ||
      IsTextOrder(overload)) {
    return Ceil(std::min(Size(args[0]), Size(args[1])) * kStringFactor);
  }
  if (overload == "add_string" || overload == "add_bytes") {
    return Ceil((Size(args[0]) + Size(args[1])) * kStringFactor);
  }
  if (overload == "matches" || overload == "matches_string") {
    return PatternCost(Size(args[0]), Size(args[1]));
  }
  if (overload == "contains_string") {
    return Ceil(Size(args[0]) * kStringFactor) *
           Ceil(Size(args[1]) * kStringFactor);
  }
  return 1;
}

}  // namespace

std::uint64_t CallCost(std::string_view function, std::string_view overload,
                       std::span<const Value> args, const Value& result) {
  if (const auto cost = ExtensionCost(overload, args, result)) return *cost;
  if (const auto cost = KubernetesCost(function, args, result)) return *cost;
  return StandardCost(overload, args);
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

bool CostTracker::DropAll(std::span<const ExprId> ids) {
  return std::all_of(ids.rbegin(), ids.rend(),
                     [&](ExprId id) { return Drop(id); });
}

}  // namespace devmgr::cel
