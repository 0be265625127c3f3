// SPDX-License-Identifier: Apache-2.0
//
// What the files that convert share: small values.
#pragma once

#include <devmgr/status_types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/convert.h"

namespace devmgr::server {

/// Texts, or names.
template <typename Text, typename Repeated>
void Put(const std::vector<Text>& from, Repeated* to) {
  for (const std::string& text : from) to->Add(ValidUtf8(text));
}

template <typename Text = std::string, typename Repeated>
std::vector<Text> Get(const Repeated& from) {
  return {from.begin(), from.end()};
}

/// The word of what may not be set, and is empty then.
template <typename Open>
std::string WordOf(const std::optional<Open>& value) {
  return value.has_value() ? ValidUtf8(value->name()) : std::string();
}

template <typename Open>
std::optional<Open> FromWord(const std::string& word) {
  if (word.empty()) return std::nullopt;
  return Open::OfWord(word);
}

inline std::int64_t MillisOf(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             time.time_since_epoch())
      .count();
}

/// Clamped: the number came over a socket, and must not overflow the clock.
inline WallTime TimeOf(std::int64_t unix_ms) {
  constexpr std::int64_t kLimit = 9'000'000'000'000;  // Year 2255.
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::milliseconds(std::clamp(unix_ms, -kLimit, kLimit))));
}

}  // namespace devmgr::server
