// SPDX-License-Identifier: Apache-2.0
#include "apistore/object_meta.h"

#include <fmt/core.h>

#include <charconv>
#include <ctime>

namespace devmgr::apistore {

std::string MetaText(const Json& object, std::string_view field) {
  const auto metadata = object.find("metadata");
  return metadata == object.end() ? "" : TextField(*metadata, field);
}

std::int64_t MetaNumber(const Json& object, std::string_view field) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return 0;
  const auto it = metadata->find(field);
  return it != metadata->end() && it->is_number_integer()
             ? it->get<std::int64_t>()
             : 0;
}

std::string TextField(const Json& object, std::string_view field) {
  if (!object.is_object()) return "";
  const auto it = object.find(field);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

ObjectKey KeyOf(const Json& object) {
  return {MetaText(object, "namespace"), MetaText(object, "name")};
}

bool HasFinalizers(const Json& object) {
  static const Json::json_pointer kFinalizers("/metadata/finalizers");
  return object.contains(kFinalizers) && object.at(kFinalizers).is_array() &&
         !object.at(kFinalizers).empty();
}

std::string TimeText(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                     parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool ReadRevision(std::string_view text, std::uint64_t& revision) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, revision);
  return !text.empty() && error == std::errc() && stop == end;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace devmgr::apistore
