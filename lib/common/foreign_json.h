// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace devmgr {

/// The most levels of lists and objects in JSON that others wrote. What works
/// on parsed JSON calls itself for each level: it must not be given more.
inline constexpr int kMaxJsonDepth = 256;

/// Whether `json` has more levels than that. Of a text that is no JSON the
/// answer says nothing.
inline bool IsJsonTooDeep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// Whether `json` has a NUL byte, which no JSON has: nlohmann takes it for the
/// end, and what follows for nothing.
inline bool HasNul(std::string_view json) {
  return json.find('\0') != std::string_view::npos;
}

}  // namespace devmgr
