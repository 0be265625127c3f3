// SPDX-License-Identifier: Apache-2.0
//
// Making JSON out of optional things.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cdi {

/// Keeps the order in which members are put.
using Json = nlohmann::ordered_json;

// Puts a member where there is something to put.

inline void Put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}
template <typename T>
void Put(Json& object, const char* key, const std::vector<T>& list) {
  if (!list.empty()) object[key] = list;
}
template <typename T>
void Put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

/// As JSON: compact, or with members and items on lines of their own.
///   InvalidArgument  a text in it is not UTF-8
absl::StatusOr<std::string> TextOf(const Json& json, int indent = -1);

/// Writes DEL, which occurs in texts only, so that our own readers take it.
std::string WithoutDel(const std::string& json_or_yaml);

/// `text` as a JSON string.
///   as TextOf
absl::StatusOr<std::string> JsonString(std::string_view text);

}  // namespace devmgr::cdi
