// SPDX-License-Identifier: Apache-2.0
//
// What several programs read in the same way.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace devmgr {

/// A duration in the style of Go: `20s`, `500ms`, `2m`, `1h30m`, `1.5s`, `0`.
/// Nothing for anything else, negative ones and those above 10,000 hours.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

}  // namespace devmgr
