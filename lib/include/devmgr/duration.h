// SPDX-License-Identifier: Apache-2.0
//
// Durations as configuration files, flags and scenarios write them.
#pragma once

#include <devmgr/export.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr {

/// A duration in the style of Go: `20s`, `500ms`, `2m`, `1h30m`, `1.5s`, `0`.
/// Nothing for anything else, negative ones and those above 10,000 hours.
DEVMGR_EXPORT std::optional<std::chrono::milliseconds> ParseDuration(
    std::string_view text);

/// `duration` in the longest unit that loses nothing: `2h`, `90m`, `1500ms`.
/// ParseDuration reads it unless it is negative or above its limit.
DEVMGR_EXPORT std::string FormatDuration(std::chrono::milliseconds duration);

}  // namespace devmgr
