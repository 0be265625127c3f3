// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace devmgr::shim {

/// The member at the end of `path`, in JSON that others wrote; null when any
/// step is not there or is no object. Lives as long as `json`.
template <typename... Rest>
const nlohmann::json& MemberOf(const nlohmann::json& json, const char* name,
                               Rest... rest) {
  static const nlohmann::json none;
  if (!json.is_object()) return none;
  const auto found = json.find(name);
  if (found == json.end()) return none;
  if constexpr (sizeof...(rest) == 0) {
    return *found;
  } else {
    return MemberOf(*found, rest...);
  }
}

}  // namespace devmgr::shim
