// SPDX-License-Identifier: Apache-2.0
#include <devmgr/duration.h>
#include <fmt/core.h>

#include <cmath>
#include <cstdint>

#include "common/ascii.h"

namespace devmgr {
namespace {

/// Takes a decimal number with an optional fraction off the front.
std::optional<double> TakeNumber(std::string_view& text) {
  double value = 0;
  bool any = false;
  while (!text.empty() && IsDigit(text.front())) {
    value = value * 10 + (text.front() - '0');
    text.remove_prefix(1);
    any = true;
  }
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    double scale = 0.1;
    while (!text.empty() && IsDigit(text.front())) {
      value += scale * (text.front() - '0');
      scale /= 10;
      text.remove_prefix(1);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return value;
}

/// Takes a unit off the front; its length in milliseconds.
std::optional<double> TakeUnit(std::string_view& text) {
  struct Unit {
    std::string_view name;
    double millis;
  };
  // `ms` before `m`.
  static constexpr Unit kUnits[] = {
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};
  for (const Unit& unit : kUnits) {
    if (text.substr(0, unit.name.size()) == unit.name) {
      text.remove_prefix(unit.name.size());
      return unit.millis;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  constexpr double kLimit = 10'000.0 * 3'600'000;
  if (text == "0") return std::chrono::milliseconds(0);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    const std::optional<double> number = TakeNumber(text);
    if (!number) return std::nullopt;
    const std::optional<double> unit = TakeUnit(text);
    if (!unit) return std::nullopt;
    total += *number * *unit;
    if (total > kLimit) return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(total));
}

std::string FormatDuration(std::chrono::milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  if (ms % 1'000 == 0) return fmt::format("{}s", ms / 1'000);
  return fmt::format("{}ms", ms);
}

}  // namespace devmgr
