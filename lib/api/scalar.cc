// SPDX-License-Identifier: Apache-2.0
#include "api/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "common/ascii.h"

namespace devmgr::api {
namespace {

template <std::size_t N>
bool IsOneOf(std::string_view text,
             const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> kNullWords = {"", "~", "null", "Null",
                                                        "NULL"};
constexpr std::array<std::string_view, 11> kTrueWords = {
    "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::array<std::string_view, 11> kFalseWords = {
    "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 12> kSpecialFloats = {
    ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
    "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

/// The integer as decimal text: prefixes 0b, 0o, 0x and the leading zero of
/// octal numbers are resolved. Decimal numbers may be of any size.
std::optional<std::string> ResolveInteger(std::string_view text) {
  std::string sign;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    if (text.front() == '-') sign = "-";
    text.remove_prefix(1);
  }
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    base = 8;
    text.remove_prefix(1);
    switch (text.front()) {
      case 'x':
      case 'X':
        base = 16;
        text.remove_prefix(1);
        break;
      case 'b':
      case 'B':
        base = 2;
        text.remove_prefix(1);
        break;
      case 'o':
      case 'O':
        text.remove_prefix(1);
        break;
      default:
        break;
    }
  }
  if (base == 10) {
    if (!std::all_of(text.begin(), text.end(), IsDigit)) return std::nullopt;
    return sign + std::string(text);
  }
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return sign + std::to_string(value);
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
bool IsFloat(std::string_view text) {
  auto take_digits = [&text] {
    std::size_t count = 0;
    while (count < text.size() && IsDigit(text[count])) ++count;
    text.remove_prefix(count);
    return count;
  };
  auto take_sign = [&text] {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  };
  take_sign();
  std::size_t digits = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t fraction = take_digits();
    if (digits == 0 && fraction == 0) return false;
    digits += fraction;
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    take_sign();
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

Value ResolvePlainScalar(std::string_view text, int line) {
  Value value;
  value.line = line;
  value.text = std::string(text);
  value.kind = Value::Kind::kString;
  if (IsOneOf(text, kNullWords)) {
    value.kind = Value::Kind::kNull;
  } else if (IsOneOf(text, kTrueWords) || IsOneOf(text, kFalseWords)) {
    value.kind = Value::Kind::kBool;
    value.flag = IsOneOf(text, kTrueWords);
  } else if (IsOneOf(text, kSpecialFloats)) {
    value.kind = Value::Kind::kFloat;
  } else if (text == "<<") {
    value.is_merge_key = true;
  } else if (IsDigit(text.front()) || text.front() == '-' ||
             text.front() == '+' || text.front() == '.') {
    std::string plain(text);
    std::erase(plain, '_');
    if (auto integer = ResolveInteger(plain)) {
      value.kind = Value::Kind::kInteger;
      value.text = *std::move(integer);
    } else if (IsFloat(plain)) {
      value.kind = Value::Kind::kFloat;
      value.text = std::move(plain);
    }
  }
  return value;
}

}  // namespace devmgr::api
