// SPDX-License-Identifier: Apache-2.0
//
// The conversions between types: int(), string(), timestamp() and so on.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "api/quote.h"
#include "cel/double_text.h"
#include "cel/function.h"
#include "cel/time_text.h"

namespace devmgr::cel {
namespace {

using std::int64_t;
using std::uint64_t;

constexpr double kBeyondInt = 9223372036854775808.0;
constexpr double kBeyondUint = 18446744073709551616.0;

Value Same(const Args& args) { return args[0]; }

Value WrongText(const Args& args, std::string_view type) {
  return Value::Failed("type conversion error from 'string' to '" +
                       std::string(type) + "': " + api::Quoted(args.Text(0)));
}

/// Reads a number that spans all of `text`.
template <typename T>
std::optional<T> ReadWhole(std::string_view text) {
  T number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

Value TextToInt(const Args& args) {
  std::string_view text = args.Text(0);
  // std::from_chars accepts no plus sign. After ours it would accept a minus
  // sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-')
    text.remove_prefix(1);
  const std::optional<int64_t> number = ReadWhole<int64_t>(text);
  return number ? Value::Int(*number) : WrongText(args, "int");
}
Value TextToUint(const Args& args) {
  const std::optional<uint64_t> number = ReadWhole<uint64_t>(args.Text(0));
  return number ? Value::Uint(*number) : WrongText(args, "uint");
}
Value TextToDouble(const Args& args) {
  const std::optional<double> number = ReadDouble(args.Text(0));
  return number ? Value::Double(*number) : WrongText(args, "double");
}
Value TextToBool(const Args& args) {
  constexpr std::array<std::string_view, 6> kTrue = {"1",    "t",    "T",
                                                     "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {
      "0", "f", "F", "false", "FALSE", "False"};
  const std::string& text = args.Text(0);
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) {
    return Value::Bool(true);
  }
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) {
    return Value::Bool(false);
  }
  return WrongText(args, "bool");
}
Value TextToDuration(const Args& args) {
  const std::optional<Duration> duration = ReadDuration(args.Text(0));
  return duration ? Value::Of(*duration) : WrongText(args, "duration");
}
Value TextToTimestamp(const Args& args) {
  const std::optional<Timestamp> time = ReadTimestamp(args.Text(0));
  return time ? Value::Of(*time) : WrongText(args, "timestamp");
}

// Fractions are cut off. NaN and numbers out of range are errors; as in cel-go
// the smallest and the largest number are out of range, too.
Value DoubleToInt(const Args& args) {
  const double number = args.As<double>(0);
  if (!(number > -kBeyondInt && number < kBeyondInt)) {
    return Value::Failed("integer overflow");
  }
  return Value::Int(static_cast<int64_t>(number));
}
Value DoubleToUint(const Args& args) {
  const double number = args.As<double>(0);
  if (!(number >= 0 && number < kBeyondUint)) {
    return Value::Failed("unsigned integer overflow");
  }
  return Value::Uint(static_cast<uint64_t>(number));
}
Value UintToInt(const Args& args) {
  const uint64_t number = args.As<uint64_t>(0);
  if (number > static_cast<uint64_t>(INT64_MAX)) {
    return Value::Failed("integer overflow");
  }
  return Value::Int(static_cast<int64_t>(number));
}
Value IntToUint(const Args& args) {
  const int64_t number = args.As<int64_t>(0);
  if (number < 0) return Value::Failed("unsigned integer overflow");
  return Value::Uint(static_cast<uint64_t>(number));
}
Value IntToTimestamp(const Args& args) {
  return Shift(Timestamp{},
               static_cast<Int128>(args.As<int64_t>(0)) * 1'000'000'000);
}

Value BytesToText(const Args& args) {
  const std::string& data = *args.As<Bytes>(0).data;
  if (api::FindInvalidUtf8(data) != std::string::npos) {
    return Value::Failed("invalid UTF-8 in bytes, cannot convert to string");
  }
  return MakeText(args, data);
}
Value TextToBytes(const Args& args) {
  if (!args.work.SpendOnText(args.Text(0).size())) return WorkIsOver();
  return Value::OfBytes(args.Text(0));
}

constexpr auto kConversionRows = std::to_array<FunctionRow>({
    {"dyn", "to_dyn", "(A) -> dyn", Same},
    {"type", "type", "(A) -> type(A)",
     [](const Args& args) { return Value::OfType(TypeOf(args[0])); }},
    {"bool", "bool_to_bool", "(bool) -> bool", Same},
    {"bool", "string_to_bool", "(string) -> bool", TextToBool},
    {"bytes", "bytes_to_bytes", "(bytes) -> bytes", Same},
    {"bytes", "string_to_bytes", "(string) -> bytes", TextToBytes},
    {"double", "double_to_double", "(double) -> double", Same},
    {"double", "int64_to_double", "(int) -> double",
     [](const Args& args) {
       return Value::Double(static_cast<double>(args.As<int64_t>(0)));
     }},
    {"double", "string_to_double", "(string) -> double", TextToDouble},
    {"double", "uint64_to_double", "(uint) -> double",
     [](const Args& args) {
       return Value::Double(static_cast<double>(args.As<uint64_t>(0)));
     }},
    {"duration", "duration_to_duration", "(duration) -> duration", Same},
    {"duration", "string_to_duration", "(string) -> duration", TextToDuration},
    {"int", "int64_to_int64", "(int) -> int", Same},
    {"int", "double_to_int64", "(double) -> int", DoubleToInt},
    {"int", "duration_to_int64", "(duration) -> int",
     [](const Args& args) { return Value::Int(args.As<Duration>(0).nanos); }},
    {"int", "string_to_int64", "(string) -> int", TextToInt},
    {"int", "timestamp_to_int64", "(timestamp) -> int",
     [](const Args& args) {
       return Value::Int(args.As<Timestamp>(0).seconds);
     }},
    {"int", "uint64_to_int64", "(uint) -> int", UintToInt},
    {"string", "string_to_string", "(string) -> string", Same},
    {"string", "bool_to_string", "(bool) -> string",
     [](const Args& args) {
       return Value::Text(args.As<bool>(0) ? "true" : "false");
     }},
    {"string", "bytes_to_string", "(bytes) -> string", BytesToText},
    {"string", "double_to_string", "(double) -> string",
     [](const Args& args) {
       return Value::Text(DoubleText(args.As<double>(0)));
     }},
    {"string", "duration_to_string", "(duration) -> string",
     [](const Args& args) {
       return Value::Text(DurationText(args.As<Duration>(0)));
     }},
    {"string", "int64_to_string", "(int) -> string",
     [](const Args& args) {
       return Value::Text(std::to_string(args.As<int64_t>(0)));
     }},
    {"string", "timestamp_to_string", "(timestamp) -> string",
     [](const Args& args) {
       return Value::Text(TimestampText(args.As<Timestamp>(0)));
     }},
    {"string", "uint64_to_string", "(uint) -> string",
     [](const Args& args) {
       return Value::Text(std::to_string(args.As<uint64_t>(0)));
     }},
    {"timestamp", "timestamp_to_timestamp", "(timestamp) -> timestamp", Same},
    {"timestamp", "int64_to_timestamp", "(int) -> timestamp", IntToTimestamp},
    {"timestamp", "string_to_timestamp", "(string) -> timestamp",
     TextToTimestamp},
    {"uint", "uint64_to_uint64", "(uint) -> uint", Same},
    {"uint", "double_to_uint64", "(double) -> uint", DoubleToUint},
    {"uint", "int64_to_uint64", "(int) -> uint", IntToUint},
    {"uint", "string_to_uint64", "(string) -> uint", TextToUint},
});

}  // namespace

std::span<const FunctionRow> ConversionFunctions() { return kConversionRows; }

}  // namespace devmgr::cel
