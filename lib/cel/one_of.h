// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace devmgr::cel {

/// Whether `names` has `name`.
inline bool IsOneOf(std::string_view name,
                    std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace devmgr::cel
