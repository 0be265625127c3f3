// SPDX-License-Identifier: Apache-2.0
//
// Timestamps and durations from and to text, and the calendar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cel/value.h"

namespace devmgr::cel {

/// The bounds of a timestamp: the first second of the year 1 and the last one
/// of 9999.
constexpr std::int64_t kMinSeconds = -62'135'596'800;
constexpr std::int64_t kMaxSeconds = 253'402'300'799;

/// Reads a duration: numbers with units, as `-1h30m` or `1.5ms`. Returns
/// nothing when `text` is none, or when the nanoseconds do not fit 64 bits.
std::optional<Duration> ReadDuration(std::string_view text);
/// A duration in seconds, with a fraction if there is one: `90.5s`.
std::string DurationText(Duration duration);

/// Reads a timestamp of RFC 3339, as `2009-02-13T23:31:30.5+01:00`.
std::optional<Timestamp> ReadTimestamp(std::string_view text);
/// A timestamp by RFC 3339 in UTC, with a fraction if there is one.
std::string TimestampText(Timestamp time);

/// `time` moved by `nanos`, or an error if the result is out of range.
Value Shift(Timestamp time, Int128 nanos);

struct Calendar {
  std::int64_t year = 0;
  int month = 0;        ///< From 0.
  int day = 0;          ///< Of the month, from 0.
  int day_of_year = 0;  ///< From 0.
  int day_of_week = 0;  ///< From 0, which is Sunday.
  int second_of_day = 0;
};
/// The calendar date `seconds` after the beginning of 1970.
Calendar CalendarOf(std::int64_t seconds);

/// Reads a time zone as seconds east of UTC: `UTC`, `+02:00` or `-2:30`. Names
/// of other zones are not known, since that needs a database on disk.
std::optional<std::int64_t> ReadZone(std::string_view text);

}  // namespace devmgr::cel
