// SPDX-License-Identifier: Apache-2.0
#include "api/quantity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "api/quote.h"
#include "common/ascii.h"
#include "common/status.h"

namespace devmgr::api {
namespace {

// GCC and clang both have it on the 64-bit targets we build for; -Wpedantic
// wants the marker.
__extension__ using Uint128 = unsigned __int128;

constexpr std::uint32_t kNano = 1'000'000'000;
constexpr std::int64_t kMaxWhole = std::numeric_limits<std::int64_t>::max();
/// Digits that a point may be moved before the amount is 0 or clamped anyway,
/// whatever the text's own digits are (their number is added to it).
constexpr std::int64_t kFarExponent = 100;

/// A number as written: the digits without their point, and where it stood.
struct Decimal {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
};

struct Scale {
  std::int64_t exponent10 = 0;
  int exponent2 = 0;
};

std::optional<Scale> ParseExponent(std::string_view digits) {
  bool negative = false;
  if (!digits.empty() && (digits.front() == '-' || digits.front() == '+')) {
    negative = digits.front() == '-';
    digits.remove_prefix(1);
  }
  if (digits.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : digits) {
    if (!IsDigit(c)) return std::nullopt;
    // Saturates far beyond what any text of allowed length can balance.
    if (value < (std::int64_t{1} << 40)) value = value * 10 + (c - '0');
  }
  return Scale{negative ? -value : value, 0};
}

std::optional<Scale> ParseSuffix(std::string_view suffix) {
  if (suffix.empty()) return Scale{};
  if (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E') &&
      suffix != "Ei") {
    return ParseExponent(suffix.substr(1));
  }
  constexpr std::string_view kLarge = "KMGTPE";
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const std::size_t power = kLarge.find(suffix[0]);
    if (power == std::string_view::npos) return std::nullopt;
    return Scale{0, 10 * (static_cast<int>(power) + 1)};
  }
  if (suffix.size() != 1) return std::nullopt;
  switch (suffix[0]) {
    case 'n':
      return Scale{-9, 0};
    case 'u':
      return Scale{-6, 0};
    case 'm':
      return Scale{-3, 0};
    case 'k':
      return Scale{3, 0};
    case 'M':
      return Scale{6, 0};
    case 'G':
      return Scale{9, 0};
    case 'T':
      return Scale{12, 0};
    case 'P':
      return Scale{15, 0};
    case 'E':
      return Scale{18, 0};
    default:
      return std::nullopt;
  }
}

/// Digits with the point moved by `shift`, read one at a time: whole digits
/// count down from the point, fraction digits up from it.
class ShiftedDigits {
 public:
  ShiftedDigits(const Decimal& decimal, std::int64_t shift)
      : digits_(std::string(decimal.whole) + std::string(decimal.fraction)) {
    // Leading zeros carry nothing; without them a far point means a far value.
    const std::size_t zeros = digits_.find_first_not_of('0');
    if (zeros == std::string::npos) {
      digits_.clear();
      return;
    }
    digits_.erase(0, zeros);
    const auto point = static_cast<std::int64_t>(decimal.whole.size()) -
                       static_cast<std::int64_t>(zeros);
    const std::int64_t far =
        kFarExponent + static_cast<std::int64_t>(digits_.size());
    point_ = std::min(std::max(point + shift, -far), far);
  }

  bool IsZero() const { return digits_.empty(); }
  std::int64_t WholeCount() const { return std::max<std::int64_t>(point_, 0); }
  std::int64_t FractionCount() const {
    return static_cast<std::int64_t>(digits_.size()) - point_;
  }
  unsigned Whole(std::int64_t i) const { return At(i); }
  unsigned Fraction(std::int64_t i) const { return At(point_ + i); }

 private:
  unsigned At(std::int64_t i) const {
    return i < 0 || i >= static_cast<std::int64_t>(digits_.size())
               ? 0
               : static_cast<unsigned>(digits_[static_cast<std::size_t>(i)] -
                                       '0');
  }

  std::string digits_;
  std::int64_t point_ = 0;
};

/// The amount in nanos, rounded up; nothing when it is beyond 64 bits of
/// whole units.
std::optional<Uint128> Nanos(const ShiftedDigits& digits, int exponent2) {
  const Uint128 limit = static_cast<Uint128>(kMaxWhole) * kNano;
  const Uint128 unit = static_cast<Uint128>(kNano) << exponent2;
  Uint128 whole = 0;
  for (std::int64_t i = 0; i < digits.WholeCount(); ++i) {
    whole = whole * 10 + digits.Whole(i);
    if (whole * unit > limit) return std::nullopt;
  }
  // Horner's scheme from the last digit on. Dropping remainders on the way is
  // exact for the floor; `sticky` knows that there were some.
  Uint128 fraction = 0;
  bool sticky = false;
  for (std::int64_t i = digits.FractionCount() - 1; i >= 0; --i) {
    const Uint128 sum = fraction + unit * digits.Fraction(i);
    sticky |= sum % 10 != 0;
    fraction = sum / 10;
  }
  const Uint128 nanos = whole * unit + fraction + (sticky ? 1 : 0);
  if (nanos > limit) return std::nullopt;
  return nanos;
}

std::string_view TakeDigits(std::string_view& rest) {
  std::size_t count = 0;
  while (count < rest.size() && IsDigit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

absl::StatusOr<Quantity> Parse(std::string_view text, bool& is_clamped) {
  is_clamped = false;
  std::string_view rest = text;
  Decimal decimal;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    decimal.negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  decimal.whole = TakeDigits(rest);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    decimal.fraction = TakeDigits(rest);
  }
  const std::optional<Scale> scale = ParseSuffix(rest);
  if ((decimal.whole.empty() && decimal.fraction.empty()) || !scale) {
    return InvalidArgumentError(
        "{} is not a quantity (a number with an optional suffix such as m, k, "
        "M, G, Ki, Mi, Gi or e3)",
        Quoted(text));
  }
  Quantity quantity;
  quantity.text = text;
  const ShiftedDigits digits(decimal, scale->exponent10);
  if (digits.IsZero()) return quantity;
  const std::optional<Uint128> nanos = Nanos(digits, scale->exponent2);
  quantity.whole =
      nanos ? static_cast<std::int64_t>(*nanos / kNano) : kMaxWhole;
  quantity.nanos = nanos ? static_cast<std::int32_t>(*nanos % kNano) : 0;
  is_clamped = !nanos.has_value();
  if (decimal.negative) {
    quantity.whole = -quantity.whole;
    quantity.nanos = -quantity.nanos;
  }
  return quantity;
}

}  // namespace

absl::StatusOr<Quantity> ParseQuantity(std::string_view text) {
  bool is_clamped = false;
  return Parse(text, is_clamped);
}

bool IsClamped(const Quantity& quantity) {
  if (quantity.whole != kMaxWhole && quantity.whole != -kMaxWhole) return false;
  bool is_clamped = false;
  return Parse(quantity.text, is_clamped).ok() && is_clamped;
}

std::string QuantityText(const Quantity& quantity) {
  if (!quantity.text.empty()) return quantity.text.str();
  const bool negative = IsNegative(quantity);
  std::string text =
      fmt::format("{}{}", negative ? "-" : "",
                  negative ? 0 - static_cast<std::uint64_t>(quantity.whole)
                           : static_cast<std::uint64_t>(quantity.whole));
  if (quantity.nanos == 0) return text;
  text += fmt::format(".{:09}", negative ? -quantity.nanos : quantity.nanos);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::strong_ordering Compare(const Quantity& a, const Quantity& b) {
  if (const auto order = a.whole <=> b.whole; order != 0) return order;
  return a.nanos <=> b.nanos;
}

bool IsNegative(const Quantity& quantity) {
  return quantity.whole < 0 || quantity.nanos < 0;
}

}  // namespace devmgr::api
