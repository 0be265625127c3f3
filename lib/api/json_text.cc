// SPDX-License-Identifier: Apache-2.0
#include "api/json_text.h"

#include <absl/strings/numbers.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace devmgr::api {
namespace {

std::string Quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

std::string FloatText(const std::string& text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return "null";
  return nlohmann::json(number).dump();
}

void Append(const Value& value, std::string* out) {
  switch (value.kind) {
    case Value::Kind::kNull:
      *out += "null";
      return;
    case Value::Kind::kBool:
      *out += value.flag ? "true" : "false";
      return;
    case Value::Kind::kInteger:
      *out += value.text;
      return;
    case Value::Kind::kFloat:
      *out += FloatText(value.text);
      return;
    case Value::Kind::kString:
      *out += Quote(value.text);
      return;
    case Value::Kind::kList:
    case Value::Kind::kMap:
      break;
  }
  const bool is_list = value.kind == Value::Kind::kList;
  *out += is_list ? '[' : '{';
  const char* separator = "";
  for (const ValuePtr& item : value.items) {
    *out += separator;
    Append(*item, out);
    separator = ",";
  }
  for (const auto& [key, member] : value.members) {
    *out += separator + Quote(key) + ":";
    Append(*member.value, out);
    separator = ",";
  }
  *out += is_list ? ']' : '}';
}

}  // namespace

std::string JsonText(const Value& value) {
  std::string text;
  Append(value, &text);
  return text;
}

}  // namespace devmgr::api
