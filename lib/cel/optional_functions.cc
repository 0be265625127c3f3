// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cel/function.h"

namespace devmgr::cel {
namespace {

Value Of(const Args& args) { return Value::OptionalOf(args[0]); }
Value None(const Args&) { return Value::OptionalNone(); }

bool IsZero(const Value& value) {
  if (const auto* b = value.As<bool>()) return !*b;
  if (const auto* i = value.As<std::int64_t>()) return *i == 0;
  if (const auto* u = value.As<std::uint64_t>()) return *u == 0;
  if (const auto* d = value.As<double>()) return *d == 0;
  if (const auto* duration = value.As<Duration>()) return duration->nanos == 0;
  if (const auto* optional = value.As<Optional>()) return !optional->value;
  // The zero time of Go is the beginning of the year 1.
  if (const auto* time = value.As<Timestamp>()) {
    return time->seconds == -62'135'596'800 && time->nanos == 0;
  }
  const bool has_size = value.Is<String>() || value.Is<Bytes>() ||
                        value.Is<List>() || value.Is<Map>();
  return value.Is<Null>() || (has_size && SizeOf(value) == 0);
}

Value OfNonZero(const Args& args) {
  return IsZero(args[0]) ? Value::OptionalNone() : Value::OptionalOf(args[0]);
}

Value GetValue(const Args& args) {
  const auto& optional = args.As<Optional>(0);
  return optional.value ? *optional.value
                        : Value::Failed("optional.none() dereference");
}

Value First(const Args& args) {
  const std::vector<Value>& list = args.As<List>(0)->elements;
  return list.empty() ? Value::OptionalNone() : Value::OptionalOf(list.front());
}
Value Last(const Args& args) {
  const std::vector<Value>& list = args.As<List>(0)->elements;
  return list.empty() ? Value::OptionalNone() : Value::OptionalOf(list.back());
}

Value Unwrap(const Args& args) {
  std::vector<Value> held;
  for (const Value& value : args.As<List>(0)->elements) {
    const auto* optional = value.As<Optional>();
    if (optional == nullptr) {
      return Value::Failed("value " + Describe(value) + " is not optional");
    }
    if (optional->value) held.push_back(*optional->value);
  }
  return MakeList(args, std::move(held));
}

constexpr auto kOptionalRows = std::to_array<FunctionRow>({
    {"optional.of", "optional_of", "(A) -> optional(A)", Of},
    {"optional.ofNonZeroValue", "optional_ofNonZeroValue", "(A) -> optional(A)",
     OfNonZero},
    {"optional.none", "optional_none", "() -> optional(A)", None},
    {"value", "optional_value", "optional(A).() -> A", GetValue},
    {"hasValue", "optional_hasValue", "optional(A).() -> bool",
     [](const Args& args) {
       return Value::Bool(args.As<Optional>(0).value != nullptr);
     }},
    {"or", "optional_or_optional", "optional(A).(optional(A)) -> optional(A)",
     kByEvaluator},
    {"orValue", "optional_orValue_value", "optional(A).(A) -> A", kByEvaluator},
    {"_[?_]", "list_optindex_optional_int", "(list(A), int) -> optional(A)",
     kByEvaluator},
    {"_[?_]", "optional_list_optindex_optional_int",
     "(optional(list(A)), int) -> optional(A)", kByEvaluator},
    {"_[?_]", "map_optindex_optional_value", "(map(A, B), A) -> optional(B)",
     kByEvaluator},
    {"_[?_]", "optional_map_optindex_optional_value",
     "(optional(map(A, B)), A) -> optional(B)", kByEvaluator},
    {"_[_]", "optional_list_index_int",
     "(optional(list(A)), int) -> optional(A)", kByEvaluator},
    {"_[_]", "optional_map_index_value",
     "(optional(map(A, B)), A) -> optional(B)", kByEvaluator},
    {"first", "list_first", "list(A).() -> optional(A)", First},
    {"last", "list_last", "list(A).() -> optional(A)", Last},
    {"optional.unwrap", "optional_unwrap", "(list(optional(A))) -> list(A)",
     Unwrap},
    {"unwrapOpt", "optional_unwrapOpt", "list(optional(A)).() -> list(A)",
     Unwrap},
});

}  // namespace

std::span<const FunctionRow> OptionalFunctions() { return kOptionalRows; }

}  // namespace devmgr::cel
