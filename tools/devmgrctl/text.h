// SPDX-License-Identifier: Apache-2.0
//
// Small conversions between values and what people type and read.
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::ctl {

/// A moment: a sequence number (`42`), RFC 3339 (`2026-11-21T10:00:00Z`, with
/// any fraction and offset), or a duration before `now` (`10m`).
/// Nothing for anything else.
std::optional<LedgerPoint> ParsePoint(std::string_view text, WallTime now);

/// The same way back: `1m30s`, `500ms`, `0s`.
std::string DurationText(std::chrono::milliseconds duration);

/// An age for tables: `12s`, `5m`, `3h12m`, `2d`.
std::string AgeText(std::chrono::seconds age);

/// RFC 3339 in UTC with milliseconds; empty for a time that was never set.
std::string TimeText(WallTime time);

/// What happened, and how often if it was more than once.
std::string MessageOf(const EventInfo& event);

/// `gpu2` before `gpu10`: runs of digits compare as numbers.
bool NaturalLess(std::string_view a, std::string_view b);

/// One line without control characters: what drivers and files said must not
/// drive the terminal.
std::string Clean(std::string_view text);

/// Texts or names, with `separator` between them.
template <typename Texts>
std::string Join(const Texts& parts, std::string_view separator) {
  std::string result;
  for (const std::string_view part : parts) {
    if (!result.empty()) result += separator;
    result += part;
  }
  return result;
}

}  // namespace devmgr::ctl
