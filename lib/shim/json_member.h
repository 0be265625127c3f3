// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/foreign_json.h"
#include "common/status.h"

namespace devmgr::shim {

using Json = nlohmann::json;

/// JSON that others wrote. Errors are to follow what it is.
///   FailedPrecondition  it is none, or nested deeper than kMaxJsonDepth
inline absl::StatusOr<nlohmann::json> ParseJson(std::string_view text) {
  if (IsJsonTooDeep(text)) {
    return FailedPreconditionError("is nested deeper than {} levels",
                                   kMaxJsonDepth);
  }
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (HasNul(text) || json.is_discarded()) {
    return FailedPreconditionError("is no JSON");
  }
  return json;
}

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
