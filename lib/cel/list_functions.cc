// SPDX-License-Identifier: Apache-2.0
//
// The functions of lists: those of Kubernetes, and version 3 of the extension
// of cel-go.
#include <algorithm>
#include <array>
#include <numeric>

#include "cel/compare.h"
#include "cel/function.h"

namespace devmgr::cel {
namespace {

using std::int64_t;

const std::vector<Value>& Elements(const Args& args, std::size_t i = 0) {
  return args.As<List>(i)->elements;
}

Value NotComparable() {
  return Value::Failed("no such overload: the elements have no order");
}

Value IsSorted(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (!args.work.Spend(1)) return WorkIsOver();
    const Order order = OrderOf(list[i - 1], list[i]);
    if (!order.comparable) return NotComparable();
    if (order.order > 0) return Value::Bool(false);
  }
  return Value::Bool(true);
}

template <bool kMax>
Value Extreme(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  if (list.empty()) {
    return Value::Failed(kMax ? "max called on empty list"
                              : "min called on empty list");
  }
  const Value* best = &list.front();
  for (const Value& value : list) {
    if (!args.work.Spend(1)) return WorkIsOver();
    const Order order = OrderOf(value, *best);
    if (!order.comparable) return NotComparable();
    if (kMax ? order.order > 0 : order.order < 0) best = &value;
  }
  return *best;
}

/// The sum of a list, calculated as `0 + element + element...` with the
/// operator of the type of its elements.
template <typename T>
Value Sum(const Args& args) {
  T sum = 0;
  for (const Value& value : Elements(args)) {
    const T* number = value.As<T>();
    if (number == nullptr) return NoSuchOverload("sum");
    if (!args.work.Spend(1)) return WorkIsOver();
    if constexpr (std::is_same_v<T, double>) {
      sum += *number;
    } else if (__builtin_add_overflow(sum, *number, &sum)) {
      return Value::Failed(std::is_signed_v<T> ? "integer overflow"
                                               : "unsigned integer overflow");
    }
  }
  return Value::Of(sum);
}

Value SumDurations(const Args& args) {
  Duration sum;
  for (const Value& value : Elements(args)) {
    const auto* duration = value.As<Duration>();
    if (duration == nullptr) return NoSuchOverload("sum");
    if (!args.work.Spend(1)) return WorkIsOver();
    if (__builtin_add_overflow(sum.nanos, duration->nanos, &sum.nanos)) {
      return Value::Failed("duration overflow");
    }
  }
  return Value::Of(sum);
}

Value ListIndexOf(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (Equal(list[i], args[1], args.work)) {
      return Value::Int(static_cast<int64_t>(i));
    }
    if (args.work.IsOver()) return WorkIsOver();
  }
  return Value::Int(-1);
}

Value ListLastIndexOf(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  for (std::size_t i = list.size(); i > 0; --i) {
    if (Equal(list[i - 1], args[1], args.work)) {
      return Value::Int(static_cast<int64_t>(i - 1));
    }
    if (args.work.IsOver()) return WorkIsOver();
  }
  return Value::Int(-1);
}

Value Includes(const Args& args) {
  const auto* list = args[0].As<List>();
  if (list == nullptr) return Value::Bool(Equal(args[0], args[1], args.work));
  for (const Value& element : (*list)->elements) {
    if (Equal(element, args[1], args.work)) return Value::Bool(true);
    if (args.work.IsOver()) return WorkIsOver();
  }
  return Value::Bool(false);
}

Value Slice(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  const int64_t begin = args.As<int64_t>(1);
  const int64_t end = args.As<int64_t>(2);
  const auto failed = [&](std::string_view why) {
    return Value::Failed("cannot slice(" + std::to_string(begin) + ", " +
                         std::to_string(end) + "), " + std::string(why));
  };
  if (begin < 0 || end < 0) return failed("negative indexes not supported");
  if (begin > end) {
    return failed("start index must be less than or equal to end index");
  }
  if (end > static_cast<int64_t>(list.size())) {
    return failed("list is length " + std::to_string(list.size()));
  }
  return MakeList(args, {list.begin() + begin, list.begin() + end});
}

/// Flattens depth first and without recursion. `waiting` has the values that
/// are still to be visited; the next one is the last.
Value Flatten(const Args& args) {
  const int64_t depth = args.size() > 1 ? args.As<int64_t>(1) : 1;
  if (depth < 0) return Value::Failed("level must be non-negative");
  std::vector<std::pair<Value, int64_t>> waiting;
  const auto push = [&](const std::vector<Value>& list, int64_t left) {
    for (std::size_t i = list.size(); i > 0; --i) {
      waiting.emplace_back(list[i - 1], left);
    }
  };
  push(Elements(args), depth);
  std::vector<Value> flat;
  while (!waiting.empty()) {
    const auto [value, left] = std::move(waiting.back());
    waiting.pop_back();
    if (!args.work.Spend(1)) return WorkIsOver();
    const auto* list = value.As<List>();
    if (list == nullptr || left == 0) {
      flat.push_back(value);
    } else if (args.work.SpendOnValues((*list)->elements.size())) {
      push((*list)->elements, left - 1);
    }
  }
  return MakeList(args, std::move(flat));
}

Value SortBy(const Args& args, const std::vector<Value>& keys) {
  const std::vector<Value>& list = Elements(args);
  if (list.size() != keys.size()) {
    return Value::Failed(
        "@sortByAssociatedKeys() expected a list of the same size as the "
        "associated keys list");
  }
  if (!args.work.Spend(32 * keys.size())) return WorkIsOver();
  for (const Value& key : keys) {
    if (key.data().index() != keys[0].data().index()) {
      return Value::Failed("list elements must have the same type");
    }
    if (!OrderOf(key, key).comparable) {
      return Value::Failed("list elements must be comparable");
    }
  }
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), 0);
  // NaN is unordered, which a sort cannot cope with. It is treated as greater
  // than all numbers.
  const auto is_nan = [&](std::size_t i) {
    return OrderOf(keys[i], keys[i]).order != 0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
                     return OrderOf(keys[a], keys[b]).order < 0;
                   });
  std::vector<Value> sorted;
  for (const std::size_t i : order) sorted.push_back(list[i]);
  return MakeList(args, std::move(sorted));
}
Value Sort(const Args& args) { return SortBy(args, Elements(args)); }
Value SortByKeys(const Args& args) { return SortBy(args, Elements(args, 1)); }

Value Range(const Args& args) {
  const int64_t size = args.As<int64_t>(0);
  if (size < 0) {
    return Value::Failed("lists.range: size must be non-negative, got " +
                         std::to_string(size));
  }
  constexpr int64_t kMaxRange = 1'000'000;
  if (size > kMaxRange) {
    return Value::Failed("lists.range: size " + std::to_string(size) +
                         " exceeds maximum allowed (1000000)");
  }
  if (!args.work.SpendOnValues(static_cast<std::uint64_t>(size)))
    return WorkIsOver();
  std::vector<Value> numbers;
  for (int64_t i = 0; i < size; ++i) numbers.push_back(Value::Int(i));
  return Value::ListOf(std::move(numbers));
}

Value ReverseList(const Args& args) {
  const std::vector<Value>& list = Elements(args);
  return MakeList(args, {list.rbegin(), list.rend()});
}

Value Distinct(const Args& args) {
  std::vector<Value> distinct;
  for (const Value& value : Elements(args)) {
    const bool seen = std::any_of(
        distinct.begin(), distinct.end(),
        [&](const Value& other) { return Equal(value, other, args.work); });
    if (args.work.IsOver()) return WorkIsOver();
    if (!seen) distinct.push_back(value);
  }
  return MakeList(args, std::move(distinct));
}

/// The rows of a function that has an overload for each type of elements.
class TypedTable {
 public:
  /// In `overload` and `signature` a `#` stands for the type.
  void Add(std::string_view name, std::string_view overload,
           std::string_view signature, std::string_view type,
           Implementation run) {
    rows_.push_back({name, Text(overload, type), Text(signature, type), run});
  }
  /// Adds a row for each type that has an order.
  void AddComparable(std::string_view name, std::string_view overload,
                     std::string_view signature, Implementation run) {
    for (const std::string_view type :
         {"int", "uint", "double", "bool", "duration", "timestamp", "string",
          "bytes"}) {
      Add(name, overload, signature, type, run);
    }
  }
  void Add(std::span<const FunctionRow> rows) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }
  std::span<const FunctionRow> rows() const { return rows_; }

 private:
  std::string_view Text(std::string_view pattern, std::string_view type) {
    std::string text(pattern);
    for (std::size_t at = 0; (at = text.find('#', at)) != text.npos;) {
      text.replace(at, 1, type);
    }
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    return *texts_.back();
  }

  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<FunctionRow> rows_;
};

constexpr auto kListRows = std::to_array<FunctionRow>({
    {"indexOf", "list_a_index_of_int", "list(A).(A) -> int", ListIndexOf},
    {"lastIndexOf", "list_a_last_index_of_int", "list(A).(A) -> int",
     ListLastIndexOf},
    {"includes", "list_includes_dyn_dyn", "dyn.(dyn) -> bool", Includes},
    {"slice", "list_slice", "list(A).(int, int) -> list(A)", Slice},
    {"flatten", "list_flatten", "list(list(A)).() -> list(A)", Flatten},
    {"flatten", "list_flatten_int", "list(dyn).(int) -> list(dyn)", Flatten},
    {"lists.range", "lists_range", "(int) -> list(int)", Range},
    {"reverse", "list_reverse", "list(A).() -> list(A)", ReverseList},
    {"distinct", "list_distinct", "list(A).() -> list(A)", Distinct},
});

TypedTable MakeTable() {
  TypedTable table;
  table.AddComparable("isSorted", "list_#_is_sorted_bool", "list(#).() -> bool",
                      IsSorted);
  table.AddComparable("max", "list_#_max_#", "list(#).() -> #", Extreme<true>);
  table.AddComparable("min", "list_#_min_#", "list(#).() -> #", Extreme<false>);
  table.AddComparable("sort", "list_#_sort", "list(#).() -> list(#)", Sort);
  table.AddComparable("@sortByAssociatedKeys", "list_#_sortByAssociatedKeys",
                      "list(A).(list(#)) -> list(A)", SortByKeys);
  constexpr std::string_view kSum = "list_#_sum_#";
  constexpr std::string_view kSumType = "list(#).() -> #";
  table.Add("sum", kSum, kSumType, "int", Sum<int64_t>);
  table.Add("sum", kSum, kSumType, "uint", Sum<std::uint64_t>);
  table.Add("sum", kSum, kSumType, "double", Sum<double>);
  table.Add("sum", kSum, kSumType, "duration", SumDurations);
  table.Add(kListRows);
  return table;
}

}  // namespace

std::span<const FunctionRow> ListFunctions() {
  static const TypedTable table = MakeTable();
  return table.rows();
}

}  // namespace devmgr::cel
