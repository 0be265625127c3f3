// SPDX-License-Identifier: Apache-2.0
//
// Making JSON: values of lib/api, member by member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json_text.h"
#include "api/value.h"

namespace devmgr::apiserver {

inline api::ValuePtr JsonNull() { return std::make_shared<const api::Value>(); }

inline api::ValuePtr JsonString(std::string_view text) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kString;
  value->text = text;
  return value;
}

inline api::ValuePtr JsonInteger(std::uint64_t number) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kInteger;
  value->text = std::to_string(number);
  return value;
}

/// The same for one that may be negative.
inline api::ValuePtr JsonSigned(std::int64_t number) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kInteger;
  value->text = std::to_string(number);
  return value;
}

inline api::ValuePtr JsonBool(bool flag) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kBool;
  value->flag = flag;
  return value;
}

inline api::ValuePtr JsonList(std::vector<api::ValuePtr> items) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kList;
  value->items = std::move(items);
  return value;
}

inline api::ValuePtr JsonStrings(const std::vector<std::string>& texts) {
  auto value = std::make_shared<api::Value>();
  value->kind = api::Value::Kind::kList;
  for (const std::string& text : texts)
    value->items.push_back(JsonString(text));
  return value;
}

/// An object.
class JsonMap {
 public:
  JsonMap() { value_.kind = api::Value::Kind::kMap; }
  JsonMap& Put(std::string_view key, api::ValuePtr value) {
    value_.members[std::string(key)].value = std::move(value);
    return *this;
  }
  JsonMap& Put(std::string_view key, std::string_view text) {
    return Put(key, JsonString(text));
  }
  /// Nothing when it is empty.
  JsonMap& PutPart(std::string_view key, const JsonMap& part) {
    return part.IsEmpty() ? *this : Put(key, part.value());
  }
  bool IsEmpty() const { return value_.members.empty(); }
  api::ValuePtr value() const {
    return std::make_shared<const api::Value>(value_);
  }
  std::string Text() const { return api::JsonText(value_); }

 private:
  api::Value value_;
};

}  // namespace devmgr::apiserver
