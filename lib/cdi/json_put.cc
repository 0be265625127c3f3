// SPDX-License-Identifier: Apache-2.0
#include "cdi/json_put.h"

#include <absl/strings/str_replace.h>

#include <exception>

#include "common/status.h"

namespace devmgr::cdi {

std::string WithoutDel(const std::string& json_or_yaml) {
  return absl::StrReplaceAll(json_or_yaml, {{"\x7F", "\\u007f"}});
}

absl::StatusOr<std::string> TextOf(const Json& json, int indent) {
  try {
    return WithoutDel(json.dump(indent));
  } catch (const std::exception& error) {
    return InvalidArgumentError("cannot be written as JSON: {}", error.what());
  }
}

absl::StatusOr<std::string> JsonString(std::string_view text) {
  return TextOf(Json(text));
}

}  // namespace devmgr::cdi
