// SPDX-License-Identifier: Apache-2.0
#include "cel/time_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "cel/double_text.h"
#include "common/ascii.h"

namespace devmgr::cel {
namespace {

constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};
constexpr auto kUnits = std::to_array<Unit>({
    {"ns", 1},
    {"us", 1'000},
    {"\u00b5s", 1'000},
    {"\u03bcs", 1'000},
    {"ms", 1'000'000},
    {"s", kNanosPerSecond},
    {"m", 60 * kNanosPerSecond},
    {"h", 3600 * kNanosPerSecond},
});

std::int64_t FloorDivide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

std::string_view TakeDigits(std::string_view& rest) {
  std::size_t size = 0;
  while (size < rest.size() && IsDigit(rest[size])) ++size;
  const std::string_view digits = rest.substr(0, size);
  rest.remove_prefix(size);
  return digits;
}

/// Reads a number with its unit from `rest` and adds it to `amount`. Returns
/// false when there is none, or when the sum is too large.
bool TakeTerm(std::string_view& rest, Int128& amount) {
  const std::string_view whole = TakeDigits(rest);
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
  }
  if (whole.empty() && fraction.empty()) return false;
  std::size_t size = 0;
  while (size < rest.size() && rest[size] != '.' && !IsDigit(rest[size])) {
    ++size;
  }
  const auto* unit = std::find_if(
      kUnits.begin(), kUnits.end(),
      [&](const Unit& known) { return known.name == rest.substr(0, size); });
  if (unit == kUnits.end()) return false;
  rest.remove_prefix(size);
  constexpr Int128 kLimit = Int128{1} << 63;
  Int128 number = 0;
  for (const char digit : whole) {
    number = number * 10 + (digit - '0');
    if (number > kLimit) return false;
  }
  // The digits after the 18th are less than a nanosecond, even of an hour.
  Int128 part = 0;
  Int128 scale = 1;
  for (const char digit : fraction.substr(0, 18)) {
    part = part * 10 + (digit - '0');
    scale *= 10;
  }
  amount += number * unit->nanos + part * unit->nanos / scale;
  return amount <= kLimit;
}

/// Removes a number of exactly `digits` digits from `text`.
std::optional<int> TakeNumber(std::string_view& text, std::size_t digits) {
  if (text.size() < digits ||
      !std::all_of(text.begin(), text.begin() + static_cast<long>(digits),
                   IsDigit)) {
    return std::nullopt;
  }
  int number = 0;
  for (std::size_t i = 0; i < digits; ++i) number = number * 10 + text[i] - '0';
  text.remove_prefix(digits);
  return number;
}

bool TakeCharacter(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

/// Removes a date and time, `yyyy-mm-ddThh:mm:ss`, from `text`.
std::optional<std::array<int, 6>> TakeDateAndTime(std::string_view& text) {
  constexpr std::string_view kSeparators = "--T::";
  std::array<int, 6> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<int> number = TakeNumber(text, i == 0 ? 4 : 2);
    if (!number) return std::nullopt;
    numbers[i] = *number;
    if (i < kSeparators.size() && !TakeCharacter(text, kSeparators[i])) {
      return std::nullopt;
    }
  }
  return numbers;
}

/// Removes a fraction of a second from `text`, if it has one. Digits after the
/// ninth are ignored.
std::optional<std::int32_t> TakeFraction(std::string_view& text) {
  if (!TakeCharacter(text, '.')) return 0;
  const std::string_view digits = TakeDigits(text);
  if (digits.empty()) return std::nullopt;
  std::int32_t nanos = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    nanos = nanos * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  }
  return nanos;
}

/// Removes an offset, `Z` or `+hh:mm`, from `text`. It is returned in seconds.
std::optional<int> TakeOffset(std::string_view& text) {
  if (TakeCharacter(text, 'Z')) return 0;
  const bool negative = !text.empty() && text.front() == '-';
  if (!negative && (text.empty() || text.front() != '+')) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<int> hours = TakeNumber(text, 2);
  if (!hours || !TakeCharacter(text, ':')) return std::nullopt;
  const std::optional<int> minutes = TakeNumber(text, 2);
  if (!minutes || *hours > 24 || *minutes > 60) return std::nullopt;
  const int seconds = *hours * 3600 + *minutes * 60;
  return negative ? -seconds : seconds;
}

bool IsLeap(std::int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int DaysIn(std::int64_t year, int month) {
  constexpr std::array kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<std::size_t>(month)] +
         (month == 1 && IsLeap(year) ? 1 : 0);
}

/// The number of days from the beginning of the year 1 to that of `year`.
std::int64_t DaysBefore(std::int64_t year) {
  const std::int64_t y = year - 1;
  return y * 365 + FloorDivide(y, 4) - FloorDivide(y, 100) +
         FloorDivide(y, 400);
}

constexpr std::int64_t kDaysTo1970 = 719'162;

/// The fraction of a second with its point and as many digits as it needs;
/// empty for a whole second.
std::string Fraction(std::int32_t nanos) {
  if (nanos == 0) return "";
  std::string digits = fmt::format(".{:09}", nanos);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits;
}

}  // namespace

std::optional<Duration> ReadDuration(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  if (text == "0") return Duration{0};
  if (text.empty()) return std::nullopt;
  Int128 amount = 0;
  while (!text.empty()) {
    if (!TakeTerm(text, amount)) return std::nullopt;
  }
  if (negative) amount = -amount;
  if (amount > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return Duration{static_cast<std::int64_t>(amount)};
}

std::string DurationText(Duration duration) {
  const std::int64_t seconds = duration.nanos / kNanosPerSecond;
  const double value = static_cast<double>(seconds) +
                       static_cast<double>(duration.nanos % kNanosPerSecond) /
                           static_cast<double>(kNanosPerSecond);
  std::array<char, 64> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    std::chars_format::fixed);
  return std::string(buffer.data(), result.ptr) + "s";
}

std::optional<Timestamp> ReadTimestamp(std::string_view text) {
  const std::optional<std::array<int, 6>> parts = TakeDateAndTime(text);
  if (!parts) return std::nullopt;
  const auto& [year, month, day, hour, minute, second] = *parts;
  if (month < 1 || month > 12 || day < 1 || day > DaysIn(year, month - 1) ||
      hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  const std::optional<std::int32_t> nanos = TakeFraction(text);
  const std::optional<int> offset = nanos ? TakeOffset(text) : std::nullopt;
  if (!offset || !text.empty()) return std::nullopt;
  std::int64_t days = DaysBefore(year) - kDaysTo1970 + day - 1;
  for (int m = 0; m + 1 < month; ++m) days += DaysIn(year, m);
  const std::int64_t seconds =
      days * kSecondsPerDay + hour * 3600 + minute * 60 + second - *offset;
  if (seconds < kMinSeconds || seconds > kMaxSeconds) return std::nullopt;
  return Timestamp{seconds, *nanos};
}

std::string TimestampText(Timestamp time) {
  const Calendar date = CalendarOf(time.seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", date.year,
                     date.month + 1, date.day + 1, date.second_of_day / 3600,
                     date.second_of_day / 60 % 60, date.second_of_day % 60,
                     Fraction(time.nanos));
}

Value Shift(Timestamp time, Int128 nanos) {
  const Int128 moved =
      static_cast<Int128>(time.seconds) * kNanosPerSecond + time.nanos + nanos;
  Int128 seconds = moved / kNanosPerSecond;
  Int128 rest = moved % kNanosPerSecond;
  if (rest < 0) {
    rest += kNanosPerSecond;
    --seconds;
  }
  if (seconds < kMinSeconds || seconds > kMaxSeconds) {
    return Value::Failed("timestamp overflow");
  }
  return Value::Of(Timestamp{static_cast<std::int64_t>(seconds),
                             static_cast<std::int32_t>(rest)});
}

Calendar CalendarOf(std::int64_t seconds) {
  Calendar date;
  std::int64_t day = FloorDivide(seconds, kSecondsPerDay);
  date.second_of_day = static_cast<int>(seconds - day * kSecondsPerDay);
  // 1970 began on a Thursday.
  date.day_of_week = static_cast<int>(day + 4 - FloorDivide(day + 4, 7) * 7);
  day += kDaysTo1970;
  date.year = FloorDivide(day, 366) + 1;
  while (DaysBefore(date.year + 1) <= day) ++date.year;
  date.day_of_year = static_cast<int>(day - DaysBefore(date.year));
  int rest = date.day_of_year;
  for (; rest >= DaysIn(date.year, date.month); ++date.month) {
    rest -= DaysIn(date.year, date.month);
  }
  date.day = rest;
  return date;
}

std::optional<std::int64_t> ReadZone(std::string_view text) {
  if (text.empty() || text == "UTC") return 0;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  std::string_view rest = text;
  const std::string_view hours = TakeDigits(rest);
  if (hours.empty() || hours.size() > 2 || !TakeCharacter(rest, ':')) {
    return std::nullopt;
  }
  const std::string_view minutes = TakeDigits(rest);
  if (minutes.empty() || minutes.size() > 2 || !rest.empty()) {
    return std::nullopt;
  }
  const auto number = [](std::string_view digits) {
    std::int64_t value = 0;
    for (const char digit : digits) value = value * 10 + (digit - '0');
    return value;
  };
  if (number(minutes) > 59) return std::nullopt;
  const std::int64_t seconds = number(hours) * 3600 + number(minutes) * 60;
  return negative ? -seconds : seconds;
}

}  // namespace devmgr::cel
