// SPDX-License-Identifier: Apache-2.0
#include "api/device_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/names.h"
#include "api/quantity.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxBindingConditions = 4;

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";
constexpr std::string_view kAllOperations = "*";

std::string Listed(std::initializer_list<std::string_view> words) {
  std::string text;
  std::size_t left = words.size();
  for (const std::string_view word : words) {
    text += fmt::format("'{}'", word);
    --left;
    if (left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

bool Contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace

std::vector<Field> ItemsAgain(const Field& list) {
  const bool is_list =
      list.IsPresent() && list.value()->kind == Value::Kind::kList;
  return is_list ? list.Items() : std::vector<Field>();
}

bool IsGiven(const Field& field) {
  return field.IsPresent() &&
         !(field.IsString() && field.value()->text.empty());
}

std::string RequiredWord(const Field& field,
                         std::initializer_list<std::string_view> known) {
  std::string word = RequiredName(field, nullptr);
  if (!word.empty() &&
      std::find(known.begin(), known.end(), word) == known.end()) {
    field.Error(fmt::format("{} is unknown; {} are known", Quoted(word),
                            Listed(known)));
  }
  return word;
}

std::vector<std::string> DecodeNames(const Field& list, std::size_t limit,
                                     std::string (*check)(std::string_view)) {
  std::vector<std::string> names;
  CheckCount(list, limit);
  for (const Field& item : list.Items()) {
    std::string name = RequiredName(item, check);
    if (name.empty()) continue;
    if (Contains(names, name)) {
      item.Error(fmt::format("{} is in the list already", Quoted(name)));
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::optional<Quantity> DecodeAmount(const Field& field) {
  std::optional<Quantity> amount = field.AsQuantity();
  if (!amount.has_value()) return amount;
  const std::string_view text = amount->text;
  if (IsNegative(*amount)) {
    field.Error(fmt::format("{} is negative", Quoted(text)));
    return std::nullopt;
  }
  // Binary amounts are clamped by API servers as well.
  if (IsClamped(*amount) && !text.ends_with('i')) {
    field.Error(
        fmt::format("{} is more than 9223372036854775807", Quoted(text)));
    return std::nullopt;
  }
  return amount;
}

std::optional<Quantity> RequiredAmount(const Field& field) {
  if (!field.IsPresent()) field.Error("is required");
  return DecodeAmount(field);
}

BindingConditions DecodeBindingConditions(const Field& field) {
  const Field conditions = field["bindingConditions"];
  const Field failures = field["bindingFailureConditions"];
  BindingConditions decoded{
      DecodeNames(conditions, kMaxBindingConditions, CheckQualifiedName),
      DecodeNames(failures, kMaxBindingConditions, CheckQualifiedName)};
  for (const Field& item : ItemsAgain(failures)) {
    const std::string name = item.IsString() ? item.StringOr("") : "";
    if (!name.empty() && Contains(decoded.conditions, name)) {
      item.Error(fmt::format("{} is in bindingConditions, too", Quoted(name)));
    }
  }
  if (decoded.conditions.empty() && !decoded.failure_conditions.empty()) {
    conditions.Error("is required with bindingFailureConditions");
  }
  if (decoded.failure_conditions.empty() && !decoded.conditions.empty()) {
    failures.Error("is required with bindingConditions");
  }
  return decoded;
}

std::vector<std::string> DecodeSkippedOperations(const Field& list) {
  std::vector<std::string> operations;
  for (const Field& item : list.Items()) {
    std::string name =
        RequiredWord(item, {kPrepare, kUnprepare, kAllOperations});
    if (Contains(operations, name)) {
      item.Error(fmt::format("{} is in the list already", Quoted(name)));
    }
    operations.push_back(std::move(name));
  }
  if (Contains(operations, kPrepare) && !Contains(operations, kUnprepare) &&
      !Contains(operations, kAllOperations)) {
    list.Error(
        "has NodePrepareResources without NodeUnprepareResources: what was not "
        "prepared cannot be unprepared");
  }
  return operations;
}

}  // namespace devmgr::api
