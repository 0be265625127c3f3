// SPDX-License-Identifier: Apache-2.0
//
// The operators of arithmetic, concatenation and look-up.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cel/compare.h"
#include "cel/function.h"
#include "cel/time_text.h"

namespace devmgr::cel {
namespace {

using std::int64_t;
using std::uint64_t;

Value IntOverflow() { return Value::Failed("integer overflow"); }
Value UintOverflow() { return Value::Failed("unsigned integer overflow"); }

// Sum, difference and product are calculated with the compiler's checked
// arithmetic.
template <typename T>
Value Result(bool overflow, T result) {
  if (!overflow) return Value::Of(result);
  return std::is_signed_v<T> ? IntOverflow() : UintOverflow();
}
template <typename T>
Value Add(const Args& args) {
  T result = 0;
  const bool overflow =
      __builtin_add_overflow(args.As<T>(0), args.As<T>(1), &result);
  return Result(overflow, result);
}
template <typename T>
Value Subtract(const Args& args) {
  T result = 0;
  const bool overflow =
      __builtin_sub_overflow(args.As<T>(0), args.As<T>(1), &result);
  return Result(overflow, result);
}
template <typename T>
Value Multiply(const Args& args) {
  T result = 0;
  const bool overflow =
      __builtin_mul_overflow(args.As<T>(0), args.As<T>(1), &result);
  return Result(overflow, result);
}

template <typename T>
bool IsTooLargeQuotient(const Args& args) {
  return std::is_signed_v<T> &&
         args.As<T>(0) == std::numeric_limits<T>::min() &&
         args.As<T>(1) == static_cast<T>(-1);
}
template <typename T>
Value Divide(const Args& args) {
  if (args.As<T>(1) == 0) return Value::Failed("division by zero");
  if (IsTooLargeQuotient<T>(args)) return IntOverflow();
  return Value::Of(static_cast<T>(args.As<T>(0) / args.As<T>(1)));
}
template <typename T>
Value Modulo(const Args& args) {
  if (args.As<T>(1) == 0) return Value::Failed("modulus by zero");
  if (IsTooLargeQuotient<T>(args)) return IntOverflow();
  return Value::Of(static_cast<T>(args.As<T>(0) % args.As<T>(1)));
}

Value NegateInt(const Args& args) {
  if (args.As<int64_t>(0) == std::numeric_limits<int64_t>::min()) {
    return IntOverflow();
  }
  return Value::Int(-args.As<int64_t>(0));
}

Value AddText(const Args& args) {
  if (!args.work.SpendOnText(args.Text(0).size() + args.Text(1).size())) {
    return WorkIsOver();
  }
  return Value::Text(args.Text(0) + args.Text(1));
}

Value AddBytes(const Args& args) {
  const std::string& a = *args.As<Bytes>(0).data;
  const std::string& b = *args.As<Bytes>(1).data;
  if (!args.work.SpendOnText(a.size() + b.size())) return WorkIsOver();
  return Value::OfBytes(a + b);
}

/// Concatenates lists. The accumulator of a running comprehension is appended
/// to in place.
Value AddLists(const Args& args) {
  const List& a = args.As<List>(0);
  const List& b = args.As<List>(1);
  const std::size_t copied =
      b->elements.size() + (a->growing ? 0 : a->elements.size());
  if (!args.work.SpendOnValues(copied)) return WorkIsOver();
  if (a->growing && a != b) {
    a->elements.insert(a->elements.end(), b->elements.begin(),
                       b->elements.end());
    a->depth = std::max(a->depth, b->depth);
    return args[0];
  }
  std::vector<Value> joined = a->elements;
  joined.insert(joined.end(), b->elements.begin(), b->elements.end());
  return Value::ListOf(std::move(joined));
}

Value AddDurations(const Args& args) {
  int64_t sum = 0;
  if (__builtin_add_overflow(args.As<Duration>(0).nanos,
                             args.As<Duration>(1).nanos, &sum)) {
    return Value::Failed("duration overflow");
  }
  return Value::Of(Duration{sum});
}
Value SubtractDurations(const Args& args) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(args.As<Duration>(0).nanos,
                             args.As<Duration>(1).nanos, &difference)) {
    return Value::Failed("duration overflow");
  }
  return Value::Of(Duration{difference});
}
Value AddTimestampDuration(const Args& args) {
  return Shift(args.As<Timestamp>(0), args.As<Duration>(1).nanos);
}
Value AddDurationTimestamp(const Args& args) {
  return Shift(args.As<Timestamp>(1), args.As<Duration>(0).nanos);
}
Value SubtractTimestampDuration(const Args& args) {
  return Shift(args.As<Timestamp>(0),
               -static_cast<Int128>(args.As<Duration>(1).nanos));
}
Value SubtractTimestamps(const Args& args) {
  const auto nanos = [&](std::size_t i) {
    const auto& time = args.As<Timestamp>(i);
    return static_cast<Int128>(time.seconds) * 1'000'000'000 + time.nanos;
  };
  const Int128 difference = nanos(0) - nanos(1);
  if (difference > std::numeric_limits<int64_t>::max() ||
      difference < std::numeric_limits<int64_t>::min()) {
    return Value::Failed("duration overflow");
  }
  return Value::Of(Duration{static_cast<int64_t>(difference)});
}

Value InList(const Args& args) {
  for (const Value& element : args.As<List>(1)->elements) {
    if (Equal(element, args[0], args.work)) return Value::Bool(true);
    if (args.work.IsOver()) return WorkIsOver();
  }
  return Value::Bool(false);
}

Value SizeFunction(const Args& args) {
  return Value::Int(static_cast<int64_t>(SizeOf(args[0])));
}

/// Inserts an entry into `into`, which may be written to.
Value InsertInto(const Args& args, const Map& into, Value key, Value value) {
  if (!IsLegalKey(key)) return Value::Failed("unsupported key type");
  if (!args.work.SpendOnValues(1 + into->entries().size() / 512))
    return WorkIsOver();
  const std::string shown = Describe(key);
  if (!into->Insert(std::move(key), std::move(value))) {
    return Value::Failed("insert failed: key " + shown + " already exists");
  }
  return Value();
}

/// The map of the first argument if it is the accumulator of a running
/// comprehension, otherwise a copy.
Map Writable(const Args& args) {
  const Map& map = args.As<Map>(0);
  if (map->growing) return map;
  args.work.SpendOnValues(2 * map->entries().size());
  return std::make_shared<MapObject>(*map);
}

Value InsertKeyValue(const Args& args) {
  const Map into = Writable(args);
  const Value inserted = InsertInto(args, into, args[1], args[2]);
  return inserted.IsError() ? inserted : Value::Of(into);
}

Value InsertMap(const Args& args) {
  const Map into = Writable(args);
  for (const MapEntry& entry : args.As<Map>(1)->entries()) {
    const Value inserted = InsertInto(args, into, entry.key, entry.value);
    if (inserted.IsError()) return inserted;
  }
  return Value::Of(into);
}

constexpr auto kOperatorRows = std::to_array<FunctionRow>({
    {"_?_:_", "conditional", "(bool, A, A) -> A", kByEvaluator},
    {"_&&_", "logical_and", "(bool, bool) -> bool", kByEvaluator},
    {"_||_", "logical_or", "(bool, bool) -> bool", kByEvaluator},
    {"@not_strictly_false", "not_strictly_false", "(bool) -> bool",
     kByEvaluator},
    {"_==_", "equals", "(A, A) -> bool", kByEvaluator},
    {"_!=_", "not_equals", "(A, A) -> bool", kByEvaluator},
    {"_[_]", "index_list", "(list(A), int) -> A", kByEvaluator},
    {"_[_]", "index_map", "(map(A, B), A) -> B", kByEvaluator},
    {"!_", "logical_not", "(bool) -> bool",
     [](const Args& args) { return Value::Bool(!args.As<bool>(0)); }},
    {"-_", "negate_double", "(double) -> double",
     [](const Args& args) { return Value::Double(-args.As<double>(0)); }},
    {"-_", "negate_int64", "(int) -> int", NegateInt},
    {"_+_", "add_bytes", "(bytes, bytes) -> bytes", AddBytes},
    {"_+_", "add_double", "(double, double) -> double",
     [](const Args& args) {
       return Value::Double(args.As<double>(0) + args.As<double>(1));
     }},
    {"_+_", "add_duration_duration", "(duration, duration) -> duration",
     AddDurations},
    {"_+_", "add_duration_timestamp", "(duration, timestamp) -> timestamp",
     AddDurationTimestamp},
    {"_+_", "add_timestamp_duration", "(timestamp, duration) -> timestamp",
     AddTimestampDuration},
    {"_+_", "add_int64", "(int, int) -> int", Add<int64_t>},
    {"_+_", "add_list", "(list(A), list(A)) -> list(A)", AddLists},
    {"_+_", "add_string", "(string, string) -> string", AddText},
    {"_+_", "add_uint64", "(uint, uint) -> uint", Add<uint64_t>},
    {"_/_", "divide_double", "(double, double) -> double",
     [](const Args& args) {
       return Value::Double(args.As<double>(0) / args.As<double>(1));
     }},
    {"_/_", "divide_int64", "(int, int) -> int", Divide<int64_t>},
    {"_/_", "divide_uint64", "(uint, uint) -> uint", Divide<uint64_t>},
    {"_%_", "modulo_int64", "(int, int) -> int", Modulo<int64_t>},
    {"_%_", "modulo_uint64", "(uint, uint) -> uint", Modulo<uint64_t>},
    {"_*_", "multiply_double", "(double, double) -> double",
     [](const Args& args) {
       return Value::Double(args.As<double>(0) * args.As<double>(1));
     }},
    {"_*_", "multiply_int64", "(int, int) -> int", Multiply<int64_t>},
    {"_*_", "multiply_uint64", "(uint, uint) -> uint", Multiply<uint64_t>},
    {"_-_", "subtract_double", "(double, double) -> double",
     [](const Args& args) {
       return Value::Double(args.As<double>(0) - args.As<double>(1));
     }},
    {"_-_", "subtract_duration_duration", "(duration, duration) -> duration",
     SubtractDurations},
    {"_-_", "subtract_int64", "(int, int) -> int", Subtract<int64_t>},
    {"_-_", "subtract_timestamp_duration", "(timestamp, duration) -> timestamp",
     SubtractTimestampDuration},
    {"_-_", "subtract_timestamp_timestamp",
     "(timestamp, timestamp) -> duration", SubtractTimestamps},
    {"_-_", "subtract_uint64", "(uint, uint) -> uint", Subtract<uint64_t>},
    {"@in", "in_list", "(A, list(A)) -> bool", InList},
    {"@in", "in_map", "(A, map(A, B)) -> bool",
     [](const Args& args) {
       return Value::Bool(args.As<Map>(1)->Find(args[0]) != nullptr);
     }},
    {"size", "size_bytes", "(bytes) -> int", SizeFunction},
    {"size", "bytes_size", "bytes.() -> int", SizeFunction},
    {"size", "size_list", "(list(A)) -> int", SizeFunction},
    {"size", "list_size", "list(A).() -> int", SizeFunction},
    {"size", "size_map", "(map(A, B)) -> int", SizeFunction},
    {"size", "map_size", "map(A, B).() -> int", SizeFunction},
    {"size", "size_string", "(string) -> int", SizeFunction},
    {"size", "string_size", "string.() -> int", SizeFunction},
    {"cel.@mapInsert", "@mapInsert_map_map",
     "(map(A, B), map(A, B)) -> map(A, B)", InsertMap},
    {"cel.@mapInsert", "@mapInsert_map_key_value",
     "(map(A, B), A, B) -> map(A, B)", InsertKeyValue},
});

template <typename Accept>
Value Ordered(const Args& args, Accept accept) {
  const Order order = OrderOf(args[0], args[1]);
  if (!order.comparable) return NoSuchOverload("comparison");
  // Comparisons with NaN are false.
  return Value::Bool(accept(order.order));
}
Value Less(const Args& args) {
  return Ordered(args, [](auto order) { return order < 0; });
}
Value LessOrEqual(const Args& args) {
  return Ordered(args, [](auto order) { return order <= 0; });
}
Value Greater(const Args& args) {
  return Ordered(args, [](auto order) { return order > 0; });
}
Value GreaterOrEqual(const Args& args) {
  return Ordered(args, [](auto order) { return order >= 0; });
}

/// The overloads of `<`. Those of `<=`, `>` and `>=` are named in the same way.
struct Comparison {
  std::string_view suffix;
  std::string_view signature;
};
constexpr auto kComparisons = std::to_array<Comparison>({
    {"bool", "(bool, bool) -> bool"},
    {"int64", "(int, int) -> bool"},
    {"int64_double", "(int, double) -> bool"},
    {"int64_uint64", "(int, uint) -> bool"},
    {"uint64", "(uint, uint) -> bool"},
    {"uint64_double", "(uint, double) -> bool"},
    {"uint64_int64", "(uint, int) -> bool"},
    {"double", "(double, double) -> bool"},
    {"double_int64", "(double, int) -> bool"},
    {"double_uint64", "(double, uint) -> bool"},
    {"string", "(string, string) -> bool"},
    {"bytes", "(bytes, bytes) -> bool"},
    {"timestamp", "(timestamp, timestamp) -> bool"},
    {"duration", "(duration, duration) -> bool"},
});

/// The rows of the four operators, and the names that the rows refer to.
class ComparisonTable {
 public:
  ComparisonTable() {
    struct Operator {
      std::string_view name;
      std::string_view prefix;
      Implementation run;
    };
    constexpr auto kOrders = std::to_array<Operator>({
        {"_<_", "less_", Less},
        {"_<=_", "less_equals_", LessOrEqual},
        {"_>_", "greater_", Greater},
        {"_>=_", "greater_equals_", GreaterOrEqual},
    });
    names_.reserve(kOrders.size() * kComparisons.size());
    for (const Operator& op : kOrders) {
      for (const Comparison& comparison : kComparisons) {
        names_.push_back(std::string(op.prefix) +
                         std::string(comparison.suffix));
        rows_.push_back({op.name, names_.back(), comparison.signature, op.run});
      }
    }
  }
  std::span<const FunctionRow> rows() const { return rows_; }

 private:
  std::vector<std::string> names_;
  std::vector<FunctionRow> rows_;
};

}  // namespace

std::span<const FunctionRow> OperatorFunctions() { return kOperatorRows; }

std::span<const FunctionRow> ComparisonFunctions() {
  static const ComparisonTable table;
  return table.rows();
}

}  // namespace devmgr::cel
