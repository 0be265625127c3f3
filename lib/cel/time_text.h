// SPDX-License-Identifier: Apache-2.0
//
// Timestamps and durations from and to text, and the calendar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cel/value.h"

namespace devmgr::cel {

/// The years 1 to 9999.
constexpr std::int64_t kMinSeconds = -62'135'596'800;
constexpr std::int64_t kMaxSeconds = 253'402'300'799;

/// A sequence of numbers with units, as `-1h30m` or `1.5ms`; nothing when it is
/// wrong or has more nanoseconds than 64 bits.
std::optional<Duration> ReadDuration(std::string_view text);
/// Seconds with a fraction as needed, `90.5s`.
std::string DurationText(Duration duration);

/// RFC 3339, such as `2009-02-13T23:31:30.5+01:00`.
std::optional<Timestamp> ReadTimestamp(std::string_view text);
/// RFC 3339 in UTC, with as many digits of the fraction as needed.
std::string TimestampText(Timestamp time);

/// `time` moved by `nanos`, or the error that this is out of range.
Value Shift(Timestamp time, Int128 nanos);

struct Calendar {
  std::int64_t year = 0;
  int month = 0;        ///< From 0.
  int day = 0;          ///< Of the month, from 0.
  int day_of_year = 0;  ///< From 0.
  int day_of_week = 0;  ///< From 0, a Sunday.
  int second_of_day = 0;
};
/// The calendar date `seconds` after the beginning of 1970.
Calendar CalendarOf(std::int64_t seconds);

/// Seconds east of UTC of `UTC`, `+02:00` or `-2:30`. Names of other zones are
/// not known.
std::optional<std::int64_t> ReadZone(std::string_view text);

}  // namespace devmgr::cel
