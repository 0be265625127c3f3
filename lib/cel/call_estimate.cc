// SPDX-License-Identifier: Apache-2.0
#include "cel/call_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "cel/cost.h"
#include "cel/device_sizes.h"
#include "cel/one_of.h"

namespace devmgr::cel {
namespace {

using Operands = std::vector<Operand>;

/// The size as the expression shows it, otherwise the bounds of the API.
SizeRange SizeOf(const Operand& operand) {
  if (operand.size) return *operand.size;
  return DeviceSize(operand.path).value_or(kUnknownSize);
}
/// The size as the expression shows it, without the bounds of the API.
SizeRange KnownSize(const Operand& operand) {
  return operand.size.value_or(kUnknownSize);
}

/// An operand that stands for the elements of a list. Nothing when the type of
/// the list does not name that of its elements.
std::optional<Operand> ElementOf(const Operand& list) {
  if (list.type->params.empty()) return std::nullopt;
  Operand element;
  element.type = list.type->params[0];
  if (!list.path.empty()) {
    element.path = list.path;
    element.path.emplace_back("@items");
  }
  return element;
}

CostRange PatternRange(const SizeRange& text, const SizeRange& pattern) {
  return (text + Fixed(1)) * kStringFactor * (pattern * kPatternFactor);
}

// -- Extensions of lists and sets, found by overload -------------------------

CallEstimate ListCall(double factor, const SizeRange& size) {
  return {size * factor + Fixed(1) + Fixed(kListCost), size};
}

/// The value of an operand that is an int literal, but at least 0; `otherwise`
/// for other operands.
std::uint64_t LiteralOr(const Operand& operand, std::uint64_t otherwise) {
  if (operand.expr == nullptr || operand.expr->kind != ExprKind::kLiteral) {
    return otherwise;
  }
  const auto* number = operand.expr->literal.As<std::int64_t>();
  if (number == nullptr) return otherwise;
  return *number < 0 ? 0 : static_cast<std::uint64_t>(*number);
}

/// A sort whose keys have this total size. The type of the keys is part of the
/// name of the overload.
CallEstimate SortCall(std::string_view overload, const SizeRange& size) {
  const bool has_text = overload.find("_string_") != std::string_view::npos ||
                        overload.find("_bytes_") != std::string_view::npos;
  return ListCall(2.0 + (has_text ? kStringFactor : 0), size * size);
}

std::optional<CallEstimate> ExtensionCall(std::string_view overload,
                                          const Operand* target,
                                          const Operands& args) {
  if (overload.starts_with("list_sets_")) {
    const double factor = overload == "list_sets_equivalent_list" ? 2 : 1;
    return CallEstimate{SizeOf(args[0]) * SizeOf(args[1]) * factor + Fixed(1),
                        std::nullopt};
  }
  if (overload == "lists_range") {
    return ListCall(1, Fixed(LiteralOr(args[0], kUnbounded)));
  }
  if (target == nullptr) return std::nullopt;
  if (overload == "list_slice") {
    // When a slice ends before it begins, the difference wraps around and the
    // size is unbounded. Upstream does the same.
    return ListCall(1, Fixed(LiteralOr(args[1], SizeOf(*target).max) -
                             LiteralOr(args[0], 0)));
  }
  if (overload == "list_reverse") return ListCall(1, SizeOf(*target));
  if (overload == "list_flatten") return ListCall(1, SizeOf(*target));
  if (overload == "list_flatten_int") {
    return ListCall(static_cast<double>(LiteralOr(args[0], kUnbounded)),
                    SizeOf(*target));
  }
  if (overload == "list_distinct") {
    return ListCall(2, SizeOf(*target) * SizeOf(*target));
  }
  if (overload.starts_with("list_") && overload.ends_with("_sort")) {
    return SortCall(overload, SizeOf(*target));
  }
  if (overload.ends_with("_sortByAssociatedKeys")) {
    return SortCall(overload, SizeOf(args[0]));
  }
  return std::nullopt;
}

// -- The Kubernetes library, found by name -----------------------------------

CallEstimate TraversalCall(std::string_view function, const Operand& target) {
  CostRange per_element = Fixed(1);
  const std::optional<Operand> element = ElementOf(target);
  if (element && (element->type->kind == TypeKind::kString ||
                  element->type->kind == TypeKind::kBytes)) {
    per_element = per_element + SizeOf(*element) * kStringFactor;
  }
  if (element || function == "includes") {
    return {SizeOf(target) * per_element, std::nullopt};
  }
  // What remains is indexOf() or lastIndexOf() of a string.
  return {SizeOf(target) * kStringFactor, std::nullopt};
}

/// How often a text may have what is replaced. A number that does not fit is
/// the largest one.
std::uint64_t Replacements(std::uint64_t text, std::uint64_t replaced) {
  constexpr double kTwo64 = 18446744073709551616.0;
  const double count =
      std::ceil(static_cast<double>(text) / static_cast<double>(replaced));
  return count >= kTwo64 ? kUnbounded : static_cast<std::uint64_t>(count);
}

CallEstimate ReplaceCall(const Operand& target, const Operands& args) {
  const SizeRange text = SizeOf(target);
  const SizeRange from = SizeOf(args[0]);
  const SizeRange to = SizeOf(args[1]);
  SizeRange count;
  SizeRange kept;
  // The longest result. An empty pattern is found around each character. If the
  // replacement is not longer than the pattern, the text does not grow.
  if (from.min == 0) {
    count.max = AddBounded(text.max, 1);
    kept.max = text.max;
  } else if (to.max <= from.min) {
    kept.max = text.max;
  } else {
    count.max = Replacements(text.max, from.min);
  }
  // The shortest result, by the same reasoning.
  if (from.max == 0) {
    count.min = AddBounded(text.min, 1);
    kept.min = text.min;
  } else if (from.max <= to.min) {
    kept.min = text.min;
  } else {
    count.min = Replacements(text.min, from.max);
  }
  return {text * (2 * kStringFactor), count * to + kept};
}

CallEstimate SplitCall(const Operand& target, const Operands& args) {
  const SizeRange text = SizeOf(target);
  std::uint64_t parts = text.max;
  if (args.size() > 1 && args[1].expr != nullptr &&
      args[1].expr->kind == ExprKind::kLiteral) {
    const auto* limit = args[1].expr->literal.As<std::int64_t>();
    if (limit != nullptr) parts = static_cast<std::uint64_t>(*limit);
  }
  return {text * (2 * kStringFactor), SizeRange{0, parts}};
}

CallEstimate JoinCall(const Operand& target, const Operands& args) {
  const SizeRange list = SizeOf(target);
  SizeRange size;
  if (const std::optional<Operand> element = ElementOf(target)) {
    size = list * SizeOf(*element);
  }
  if (!args.empty()) {
    const SizeRange separators = {list.min > 0 ? list.min - 1 : 0,
                                  list.max > 0 ? list.max - 1 : 0};
    size = size + SizeOf(args[0]) * separators;
  }
  return {size * kStringFactor, size};
}

bool IsSimpleEquality(std::string_view function, const Operands& args) {
  if (function != "_==_" || !SameType(*args[0].type, *args[1].type)) {
    return false;
  }
  const Type& type = *args[0].type;
  return type.kind == TypeKind::kObject &&
         (type.name == kQuantityTypeName || type.name == kSemverTypeName);
}

std::optional<CallEstimate> KubernetesCall(std::string_view function,
                                           const Operand* target,
                                           const Operands& args) {
  constexpr std::array<std::string_view, 7> kTraversals = {
      "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"};
  constexpr std::array<std::string_view, 4> kTransforms = {
      "lowerAscii", "upperAscii", "substring", "trim"};
  constexpr std::array<std::string_view, 4> kReaders = {
      "quantity", "isQuantity", "semver", "isSemver"};
  constexpr std::array<std::string_view, 12> kSimple = {
      "sign",          "asInteger",  "isInteger", "asApproximateFloat",
      "isGreaterThan", "isLessThan", "compareTo", "add",
      "sub",           "major",      "minor",     "patch"};
  if (IsOneOf(function, kSimple) || IsSimpleEquality(function, args)) {
    return CallEstimate{Fixed(1), std::nullopt};
  }
  if (IsOneOf(function, kReaders)) {
    return CallEstimate{SizeOf(args[0]) * kStringFactor, std::nullopt};
  }
  if (target == nullptr) return std::nullopt;
  if (IsOneOf(function, kTraversals)) return TraversalCall(function, *target);
  if (IsOneOf(function, kTransforms)) {
    return CallEstimate{SizeOf(*target) * kStringFactor, SizeOf(*target)};
  }
  if (function == "replace") return ReplaceCall(*target, args);
  if (function == "split") return SplitCall(*target, args);
  if (function == "join") return JoinCall(*target, args);
  if (function == "find" || function == "findAll") {
    return CallEstimate{PatternRange(SizeOf(*target), SizeOf(args[0])),
                        SizeRange{0, SizeOf(*target).max}};
  }
  return std::nullopt;
}

// -- Functions of the language, found by overload ----------------------------

/// The cost of comparing two values, which ends with the smaller one.
CostRange ComparisonCost(const Operands& args) {
  const std::uint64_t smaller =
      std::min(KnownSize(args[0]).max, KnownSize(args[1]).max);
  return CostRange{smaller > 0 ? 1U : 0U, smaller} * kStringFactor;
}

bool ComparesTexts(std::string_view overload) {
  constexpr std::array<std::string_view, 10> kNames = {
      "less_string",    "less_equals_string",
      "greater_string", "greater_equals_string",
      "less_bytes",     "less_equals_bytes",
      "greater_bytes",  "greater_equals_bytes",
      "equals",         "not_equals"};
  return IsOneOf(overload, kNames);
}

std::optional<CallEstimate> StandardCall(std::string_view overload,
                                         const Operand* target,
                                         const Operands& args) {
  if (ComparesTexts(overload)) {
    return CallEstimate{ComparisonCost(args), std::nullopt};
  }
  if (overload == "starts_with_string" || overload == "ends_with_string") {
    return CallEstimate{KnownSize(args[0]) * kStringFactor, std::nullopt};
  }
  if (overload == "in_list") {
    return CallEstimate{KnownSize(args[1]) * 1.0, std::nullopt};
  }
  if (overload == "matches_string") {
    return CallEstimate{PatternRange(KnownSize(*target), KnownSize(args[0])),
                        std::nullopt};
  }
  if (overload == "matches") {
    return CallEstimate{PatternRange(KnownSize(args[0]), KnownSize(args[1])),
                        std::nullopt};
  }
  if (overload == "contains_string") {
    return CallEstimate{KnownSize(*target) * kStringFactor *
                            (KnownSize(args[0]) * kStringFactor),
                        std::nullopt};
  }
  if (overload == "string_format") {
    return CallEstimate{KnownSize(*target) * kStringFactor, std::nullopt};
  }
  if (args.empty()) return std::nullopt;
  const SizeRange size = KnownSize(args[0]);
  if (overload == "string_to_bytes") {
    // A character has up to four bytes.
    return CallEstimate{size * kStringFactor,
                        SizeRange{size.min, size.max * 4}};
  }
  if (overload == "bytes_to_string") {
    return CallEstimate{size * kStringFactor,
                        SizeRange{size.min / 4, size.max}};
  }
  if (overload == "strings_quote") {
    return CallEstimate{size * kStringFactor,
                        SizeRange{size.min + 2, size.max * 2 + 2}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<CallEstimate> EstimateCall(std::string_view function,
                                         std::string_view overload,
                                         const Operand* target,
                                         const std::vector<Operand>& args) {
  if (auto call = ExtensionCall(overload, target, args)) return call;
  if (auto call = KubernetesCall(function, target, args)) return call;
  if (auto call = StandardCall(overload, target, args)) return call;
  constexpr std::array<std::string_view, 6> kCallersOwn = {
      "logical_and", "logical_or", "conditional",
      "add_string",  "add_bytes",  "add_list"};
  if (IsOneOf(overload, kCallersOwn)) return std::nullopt;
  return CallEstimate{Fixed(1), std::nullopt};
}

}  // namespace devmgr::cel
