// SPDX-License-Identifier: Apache-2.0
//
// The function format() as cel-spec describes it. Numbers are written without
// regard to the locale.
#include "cel/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "api/quote.h"
#include "cel/function.h"
#include "cel/time_text.h"
#include "common/ascii.h"

namespace devmgr::cel {
namespace {

constexpr int kMaxPrecision = 1000;

std::optional<std::string> NotFinite(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return std::nullopt;
}

std::string PlainDouble(double number) {
  if (const auto text = NotFinite(number)) return *text;
  std::array<char, 1200> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    std::chars_format::fixed);
  return std::string(buffer.data(), result.ptr);
}

std::string HexBytes(std::string_view data, bool upper) {
  std::string text;
  for (const char byte : data) {
    const auto number = static_cast<unsigned char>(byte);
    text +=
        upper ? fmt::format("{:02X}", number) : fmt::format("{:02x}", number);
  }
  return text;
}

class Formatter {
 public:
  Formatter(std::string_view text, const std::vector<Value>& values, Work& work)
      : rest_(text), values_(values), work_(work) {}

  Value Run() {
    while (!rest_.empty() && !failed_) {
      const std::size_t percent = std::min(rest_.find('%'), rest_.size());
      out_ += rest_.substr(0, percent);
      rest_.remove_prefix(percent);
      if (!rest_.empty()) TakeClause();
      if (!work_.Spend(percent + 1)) return WorkIsOver();
    }
    return failed_ ? *failed_ : Value::Text(std::move(out_));
  }

 private:
  void Fail(std::string message) {
    if (!failed_) failed_ = Value::Failed("format: " + std::move(message));
  }

  void TakeClause() {
    rest_.remove_prefix(1);
    if (!rest_.empty() && rest_.front() == '%') {
      out_ += '%';
      rest_.remove_prefix(1);
      return;
    }
    if (next_ >= values_.size()) {
      return Fail(fmt::format("index {} out of range", next_));
    }
    const std::optional<int> precision = TakePrecision();
    if (failed_) return;
    if (rest_.empty()) return Fail("unexpected end of the string");
    const char clause = rest_.front();
    rest_.remove_prefix(1);
    Append(clause, precision.value_or(6), values_[next_++]);
  }

  std::optional<int> TakePrecision() {
    if (rest_.empty() || rest_.front() != '.') return std::nullopt;
    rest_.remove_prefix(1);
    int precision = 0;
    bool any = false;
    for (; !rest_.empty() && IsDigit(rest_.front()); rest_.remove_prefix(1)) {
      precision =
          std::min(precision * 10 + rest_.front() - '0', kMaxPrecision + 1);
      any = true;
    }
    if (!any) Fail("a precision has no digits");
    if (precision > kMaxPrecision) {
      Fail(fmt::format("a precision is larger than {}", kMaxPrecision));
    }
    return precision;
  }

  void Append(char clause, int precision, const Value& value) {
    switch (clause) {
      case 's':
        return AppendText(value);
      case 'd':
        return AppendDecimal(value);
      case 'f':
      case 'e':
        return AppendFloat(clause, precision, value);
      case 'b':
        return AppendBits(value, 2);
      case 'o':
        return AppendBits(value, 8);
      case 'x':
      case 'X':
        return AppendHex(value, clause == 'X');
      default:
        return Fail("unrecognized formatting clause " +
                    api::Quoted(std::string(1, clause)));
    }
  }

  void WrongType(std::string_view clause, const Value& value) {
    Fail(fmt::format("the clause '%{}' does not take a value of type '{}'",
                     clause, TypeName(*TypeOf(value))));
  }

  /// Recursion is bounded by kMaxValueDepth.
  void AppendText(const Value& value) {
    if (!work_.Spend(1)) return Fail("the values are too large");
    if (const auto* b = value.As<bool>()) {
      out_ += *b ? "true" : "false";
    } else if (value.Is<Null>()) {
      out_ += "null";
    } else if (value.Is<String>()) {
      Spend(value.text());
    } else if (const auto* bytes = value.As<Bytes>()) {
      Spend(*bytes->data);
    } else if (const auto* duration = value.As<Duration>()) {
      out_ += DurationText(*duration);
    } else if (const auto* time = value.As<Timestamp>()) {
      out_ += TimestampText(*time);
    } else if (const auto* type = value.As<TypeValue>()) {
      out_ += TypeName(*type->type);
    } else if (const auto* list = value.As<List>()) {
      AppendList(**list);
    } else if (const auto* map = value.As<Map>()) {
      AppendMap(**map);
    } else if (value.Is<std::int64_t>() || value.Is<std::uint64_t>() ||
               value.Is<double>()) {
      AppendDecimal(value);
    } else {
      WrongType("s", value);
    }
  }

  void Spend(const std::string& text) {
    if (!work_.SpendOnText(text.size()))
      return Fail("the values are too large");
    out_ += text;
  }

  void AppendList(const ListObject& list) {
    out_ += "[";
    for (const Value& element : list.elements) {
      if (&element != &list.elements.front()) out_ += ", ";
      AppendText(element);
      if (failed_) return;
    }
    out_ += "]";
  }

  /// The entries of a map are sorted by the text of their key.
  void AppendMap(const MapObject& map) {
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const MapEntry& entry : map.entries()) {
      Formatter key("", values_, work_);
      key.AppendText(entry.key);
      entries.emplace_back(std::move(key.out_), &entry.value);
    }
    std::stable_sort(
        entries.begin(), entries.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    out_ += "{";
    for (std::size_t i = 0; i < entries.size() && !failed_; ++i) {
      if (i > 0) out_ += ", ";
      out_ += entries[i].first + ": ";
      AppendText(*entries[i].second);
    }
    out_ += "}";
  }

  void AppendDecimal(const Value& value) {
    if (const auto* i = value.As<std::int64_t>()) {
      out_ += std::to_string(*i);
    } else if (const auto* u = value.As<std::uint64_t>()) {
      out_ += std::to_string(*u);
    } else if (const auto* d = value.As<double>()) {
      out_ += PlainDouble(*d);
    } else {
      WrongType("d", value);
    }
  }

  void AppendFloat(char clause, int precision, const Value& value) {
    double number = 0;
    if (const auto* i = value.As<std::int64_t>()) {
      number = static_cast<double>(*i);
    } else if (const auto* u = value.As<std::uint64_t>()) {
      number = static_cast<double>(*u);
    } else if (const auto* d = value.As<double>()) {
      number = *d;
    } else {
      return WrongType(std::string(1, clause), value);
    }
    if (const auto text = NotFinite(number)) {
      out_ += *text;
    } else {
      out_ += clause == 'f' ? fmt::format("{:.{}f}", number, precision)
                            : fmt::format("{:.{}e}", number, precision);
    }
  }

  void AppendBits(const Value& value, int base) {
    std::array<char, 66> buffer{};
    const auto append = [&](auto number) {
      const auto result = std::to_chars(
          buffer.data(), buffer.data() + buffer.size(), number, base);
      out_.append(buffer.data(), result.ptr);
    };
    if (const auto* i = value.As<std::int64_t>()) {
      append(*i);
    } else if (const auto* u = value.As<std::uint64_t>()) {
      append(*u);
    } else if (const auto* b = value.As<bool>(); b != nullptr && base == 2) {
      out_ += *b ? "1" : "0";
    } else {
      WrongType(base == 2 ? "b" : "o", value);
    }
  }

  void AppendHex(const Value& value, bool upper) {
    if (const auto* i = value.As<std::int64_t>()) {
      out_ += upper ? fmt::format("{:X}", *i) : fmt::format("{:x}", *i);
    } else if (const auto* u = value.As<std::uint64_t>()) {
      out_ += upper ? fmt::format("{:X}", *u) : fmt::format("{:x}", *u);
    } else if (value.Is<String>()) {
      Spend(HexBytes(value.text(), upper));
    } else if (const auto* bytes = value.As<Bytes>()) {
      Spend(HexBytes(*bytes->data, upper));
    } else {
      WrongType(upper ? "X" : "x", value);
    }
  }

  std::string_view rest_;
  const std::vector<Value>& values_;
  Work& work_;
  std::string out_;
  std::size_t next_ = 0;
  std::optional<Value> failed_;
};

}  // namespace

Value FormatText(std::string_view text, const std::vector<Value>& values,
                 Work& work) {
  return Formatter(text, values, work).Run();
}

}  // namespace devmgr::cel
