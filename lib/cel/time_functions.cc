// SPDX-License-Identifier: Apache-2.0
//
// The functions that read parts of timestamps and durations. Timestamps are
// read in UTC unless a time zone is given.
#include <array>

#include "api/quote.h"
#include "cel/function.h"
#include "cel/time_text.h"

namespace devmgr::cel {
namespace {

using Part = std::int64_t (*)(const Calendar&, const Timestamp&);

std::int64_t Year(const Calendar& date, const Timestamp&) { return date.year; }
std::int64_t Month(const Calendar& date, const Timestamp&) {
  return date.month;
}
std::int64_t DayOfYear(const Calendar& date, const Timestamp&) {
  return date.day_of_year;
}
std::int64_t DayOfMonth(const Calendar& date, const Timestamp&) {
  return date.day;
}
std::int64_t Date(const Calendar& date, const Timestamp&) {
  return date.day + 1;
}
std::int64_t DayOfWeek(const Calendar& date, const Timestamp&) {
  return date.day_of_week;
}
std::int64_t Hours(const Calendar& date, const Timestamp&) {
  return date.second_of_day / 3600;
}
std::int64_t Minutes(const Calendar& date, const Timestamp&) {
  return date.second_of_day / 60 % 60;
}
std::int64_t Seconds(const Calendar& date, const Timestamp&) {
  return date.second_of_day % 60;
}
std::int64_t Milliseconds(const Calendar&, const Timestamp& time) {
  return time.nanos / 1'000'000;
}

template <Part kPart>
Value Utc(const Args& args) {
  const auto& time = args.As<Timestamp>(0);
  return Value::Int(kPart(CalendarOf(time.seconds), time));
}

template <Part kPart>
Value InZone(const Args& args) {
  const std::optional<std::int64_t> zone = ReadZone(args.Text(1));
  if (!zone) {
    return Value::Failed("unknown time zone " + api::Quoted(args.Text(1)) +
                         ": 'UTC' and offsets such as '+02:00' are known");
  }
  const auto& time = args.As<Timestamp>(0);
  return Value::Int(kPart(CalendarOf(time.seconds + *zone), time));
}

template <std::int64_t kNanos>
Value OfDuration(const Args& args) {
  return Value::Int(args.As<Duration>(0).nanos / kNanos);
}

constexpr std::string_view kUtc = "timestamp.() -> int";
constexpr std::string_view kZone = "timestamp.(string) -> int";
constexpr std::string_view kDuration = "duration.() -> int";

constexpr auto kTimeRows = std::to_array<FunctionRow>({
    {"getFullYear", "timestamp_to_year", kUtc, Utc<Year>},
    {"getFullYear", "timestamp_to_year_with_tz", kZone, InZone<Year>},
    {"getMonth", "timestamp_to_month", kUtc, Utc<Month>},
    {"getMonth", "timestamp_to_month_with_tz", kZone, InZone<Month>},
    {"getDayOfYear", "timestamp_to_day_of_year", kUtc, Utc<DayOfYear>},
    {"getDayOfYear", "timestamp_to_day_of_year_with_tz", kZone,
     InZone<DayOfYear>},
    {"getDayOfMonth", "timestamp_to_day_of_month", kUtc, Utc<DayOfMonth>},
    {"getDayOfMonth", "timestamp_to_day_of_month_with_tz", kZone,
     InZone<DayOfMonth>},
    {"getDate", "timestamp_to_day_of_month_1_based", kUtc, Utc<Date>},
    {"getDate", "timestamp_to_day_of_month_1_based_with_tz", kZone,
     InZone<Date>},
    {"getDayOfWeek", "timestamp_to_day_of_week", kUtc, Utc<DayOfWeek>},
    {"getDayOfWeek", "timestamp_to_day_of_week_with_tz", kZone,
     InZone<DayOfWeek>},
    {"getHours", "timestamp_to_hours", kUtc, Utc<Hours>},
    {"getHours", "timestamp_to_hours_with_tz", kZone, InZone<Hours>},
    {"getHours", "duration_to_hours", kDuration, OfDuration<3'600'000'000'000>},
    {"getMinutes", "timestamp_to_minutes", kUtc, Utc<Minutes>},
    {"getMinutes", "timestamp_to_minutes_with_tz", kZone, InZone<Minutes>},
    {"getMinutes", "duration_to_minutes", kDuration,
     OfDuration<60'000'000'000>},
    {"getSeconds", "timestamp_to_seconds", kUtc, Utc<Seconds>},
    {"getSeconds", "timestamp_to_seconds_tz", kZone, InZone<Seconds>},
    {"getSeconds", "duration_to_seconds", kDuration, OfDuration<1'000'000'000>},
    {"getMilliseconds", "timestamp_to_milliseconds", kUtc, Utc<Milliseconds>},
    {"getMilliseconds", "timestamp_to_milliseconds_with_tz", kZone,
     InZone<Milliseconds>},
    {"getMilliseconds", "duration_to_milliseconds", kDuration,
     OfDuration<1'000'000>},
});

}  // namespace

std::span<const FunctionRow> TimeFunctions() { return kTimeRows; }

}  // namespace devmgr::cel
