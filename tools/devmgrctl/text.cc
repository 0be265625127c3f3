// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <devmgr/duration.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace devmgr::ctl {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes a time in RFC 3339 apart, field by field. What does not fit is
/// remembered, so that it has to be asked for once only.
class TimeParser {
 public:
  explicit TimeParser(std::string_view text) : text_(text) {}

  std::optional<WallTime> Parse() {
    using std::chrono::day;
    using std::chrono::month;
    using std::chrono::year;
    const int years = Field(4, 1970, 2200);  // The clock can hold these.
    Expect("-");
    const int months = Field(2, 1, 12);
    Expect("-");
    const int days = Field(2, 1, 31);
    Expect("Tt");
    const int hours = Field(2, 0, 23);
    Expect(":");
    const int minutes = Field(2, 0, 59);
    Expect(":");
    const int seconds = Field(2, 0, 60);  // 60 is a leap second.
    const std::chrono::milliseconds fraction = Fraction();
    const std::chrono::minutes offset = Offset();
    const std::chrono::year_month_day date(year(years),
                                           month(static_cast<unsigned>(months)),
                                           day(static_cast<unsigned>(days)));
    if (!fits_ || !text_.empty() || !date.ok()) return std::nullopt;
    return WallTime(std::chrono::sys_days(date).time_since_epoch() +
                    std::chrono::hours(hours) + std::chrono::minutes(minutes) +
                    std::chrono::seconds(seconds) + fraction - offset);
  }

 private:
  /// A number of exactly so many digits.
  int Field(std::size_t digits, int low, int high) {
    int value = 0;
    for (; digits > 0; --digits) {
      if (text_.empty() || !IsDigit(text_.front())) {
        fits_ = false;
        return low;
      }
      value = value * 10 + (text_.front() - '0');
      text_.remove_prefix(1);
    }
    fits_ = fits_ && value >= low && value <= high;
    return value;
  }

  /// One of these characters, or 0.
  char Take(std::string_view any_of) {
    if (text_.empty() || any_of.find(text_.front()) == any_of.npos) return 0;
    const char taken = text_.front();
    text_.remove_prefix(1);
    return taken;
  }

  void Expect(std::string_view any_of) {
    if (Take(any_of) == 0) fits_ = false;
  }

  std::chrono::milliseconds Fraction() {
    if (Take(".") == 0) return {};
    if (text_.empty() || !IsDigit(text_.front())) fits_ = false;
    std::chrono::milliseconds fraction(0);
    for (int scale = 100; !text_.empty() && IsDigit(text_.front());
         scale /= 10) {
      fraction += std::chrono::milliseconds((text_.front() - '0') * scale);
      text_.remove_prefix(1);
    }
    return fraction;
  }

  /// How much later than in UTC it is by that clock.
  std::chrono::minutes Offset() {
    if (Take("Zz") != 0) return {};
    const char sign = Take("+-");
    const int hours = Field(2, 0, 23);
    Expect(":");
    const int minutes = Field(2, 0, 59);
    if (sign == 0) fits_ = false;
    return std::chrono::minutes((hours * 60 + minutes) *
                                (sign == '-' ? -1 : 1));
  }

  std::string_view text_;
  bool fits_ = true;
};

/// Takes a run of digits off the front, without leading zeros.
std::string_view TakeDigits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && IsDigit(text[length])) ++length;
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

std::optional<LedgerPoint> ParsePoint(std::string_view text, WallTime now) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsDigit)) {
    std::uint64_t sequence = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, sequence).ec != std::errc()) {
      return std::nullopt;
    }
    return sequence;
  }
  if (const auto ago = ParseDuration(text)) return now - *ago;
  if (const auto time = TimeParser(text).Parse()) return *time;
  return std::nullopt;
}

std::string DurationText(std::chrono::milliseconds duration) {
  const auto millis = duration.count();
  std::string text;
  if (millis >= 3'600'000) text += fmt::format("{}h", millis / 3'600'000);
  if (millis % 3'600'000 >= 60'000) {
    text += fmt::format("{}m", millis % 3'600'000 / 60'000);
  }
  const auto rest = millis % 60'000;
  if (rest >= 1'000 && rest % 1'000 == 0) {
    text += fmt::format("{}s", rest / 1'000);
  } else if (rest >= 1'000) {
    text += fmt::format("{:g}s", static_cast<double>(rest) / 1'000);
  } else if (rest > 0) {
    text += fmt::format("{}ms", rest);
  }
  return text.empty() ? "0s" : text;
}

std::string AgeText(std::chrono::seconds age) {
  const auto seconds = age.count() < 0 ? 0 : age.count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  const auto minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{}m", minutes);
  const auto hours = minutes / 60;
  if (hours >= 24) return fmt::format("{}d", hours / 24);
  if (minutes % 60 == 0) return fmt::format("{}h", hours);
  return fmt::format("{}h{}m", hours, minutes % 60);
}

std::string TimeText(WallTime time) {
  using std::chrono::milliseconds;
  const auto millis =
      std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
  if (millis <= 0) return "";
  const std::time_t seconds = millis / 1'000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec, millis % 1'000);
}

std::string MessageOf(const EventInfo& event) {
  if (event.count <= 1) return event.message;
  const std::string since = TimeText(event.first_time);
  return fmt::format("{} (repeated {} {}{}{})", event.message, event.count - 1,
                     event.count == 2 ? "time" : "times",
                     since.empty() ? "" : " since ", since);
}

bool NaturalLess(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view number_a = TakeDigits(a), number_b = TakeDigits(b);
      if (number_a.size() != number_b.size()) {
        return number_a.size() < number_b.size();
      }
      if (number_a != number_b) return number_a < number_b;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // `gpu02` and `gpu2`: any order, but always one.
}

std::string Clean(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // C1 control characters are U+0080 to U+009F: 0xC2 and one more byte.
    const bool c1 = c == 0xC2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                    static_cast<unsigned char>(text[i + 1]) <= 0x9F;
    if (c1) {
      result += '?';
      ++i;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      result += ' ';
    } else if (c < 0x20 || c == 0x7F) {
      result += '?';
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace devmgr::ctl
