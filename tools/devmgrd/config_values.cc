// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/config_values.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace devmgrd {

std::string Shown(std::string_view text, std::size_t limit) {
  using Json = nlohmann::json;
  std::string shown = Json(std::string(text.substr(0, limit)))
                          .dump(-1, ' ', true, Json::error_handler_t::replace);
  shown = shown.substr(1, shown.size() - 2);  // its quotes
  return text.size() > limit ? shown + "..." : shown;
}

bool IsUtf8(const std::string& text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::exception&) {
    return false;  // it writes nothing else
  }
}

namespace {

bool HasControlCharacters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

}  // namespace

std::string Where(const std::string& file, const YAML::Node& node) {
  return fmt::format("{}:{}", file, node.Mark().line + 1);
}

absl::Status CheckText(const YAML::Node& value, const std::string& file,
                       const std::string& key) {
  if (!value.IsScalar()) {
    return Invalid("{}: {}: must be a text", Where(file, value), key);
  }
  if (HasControlCharacters(value.Scalar())) {
    return Invalid("{}: {}: '{}' has control characters", Where(file, value),
                   key, Shown(value.Scalar()));
  }
  // The file is, but yaml-cpp 0.7 reads the escapes `\N` and `\_` as one byte.
  if (!IsUtf8(value.Scalar())) {
    return Invalid("{}: {}: '{}' is not UTF-8", Where(file, value), key,
                   Shown(value.Scalar()));
  }
  return absl::OkStatus();
}

absl::Status ReadTexts(const YAML::Node& value, const std::string& file,
                       const std::string& key, std::string_view what,
                       std::vector<std::string>* to) {
  if (!value.IsSequence()) {
    return Invalid("{}: {}: must be a list of {}", Where(file, value), key,
                   what);
  }
  to->clear();
  for (const YAML::Node& item : value) {
    absl::Status status = CheckText(item, file, key);
    if (!status.ok()) return status;
    to->push_back(item.Scalar());
  }
  return absl::OkStatus();
}

absl::Status ReadBool(const YAML::Node& value, const std::string& file,
                      const std::string& key, bool* to) {
  if (value.IsScalar() && YAML::convert<bool>::decode(value, *to)) {
    return absl::OkStatus();
  }
  return Invalid("{}: {}: must be true or false", Where(file, value), key);
}

}  // namespace devmgrd
