// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"
#include "common/ascii.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxReasonLength = 1024;
constexpr std::size_t kMaxMessageLength = std::size_t{32} * 1024;

bool IsReason(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto is_word = [&](char c) {
    return is_letter(c) || IsDigit(c) || c == '_';
  };
  return text.size() <= kMaxReasonLength && is_letter(text.front()) &&
         is_word(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_word(c) || c == ',' || c == ':';
         });
}

Condition DecodeCondition(const Field& field) {
  Condition condition;
  condition.type = RequiredName(field["type"], CheckQualifiedName);
  condition.status =
      RequiredWord(field["status"], {"True", "False", "Unknown"});
  const Field reason = field["reason"];
  condition.reason = RequiredName(reason, nullptr);
  if (!condition.reason.empty() && !IsReason(condition.reason)) {
    reason.Error(fmt::format(
        "{} is not a reason: up to {} letters, digits, '_', ',' and ':', "
        "beginning with a letter and not ending with ',' or ':'",
        Quoted(condition.reason), kMaxReasonLength));
  }
  const Field message = field["message"];
  condition.message = message.StringOr("");
  if (condition.message.size() > kMaxMessageLength) {
    message.Error(fmt::format("has {} bytes, at most {} are allowed",
                              condition.message.size(), kMaxMessageLength));
  }
  const Field time = field["lastTransitionTime"];
  if (!time.IsPresent()) time.Error("is required");
  condition.last_transition_time = DecodeTimestamp(time);
  condition.observed_generation =
      field["observedGeneration"]
          .AsInteger(0, std::numeric_limits<std::int64_t>::max())
          .value_or(0);
  return condition;
}

}  // namespace

std::vector<Condition> DecodeConditions(const Field& list, std::size_t limit) {
  std::vector<Condition> conditions;
  CheckCount(list, limit);
  std::set<std::string> types;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    Condition condition = DecodeCondition(item);
    if (!condition.type.empty() && !types.insert(condition.type).second) {
      item["type"].Error(fmt::format("{} is the type of another condition",
                                     Quoted(condition.type)));
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace devmgr::api
