// SPDX-License-Identifier: Apache-2.0
#include "api/meta.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <string>

#include "api/names.h"
#include "api/quote.h"
#include "common/ascii.h"

namespace devmgr::api {
namespace {

/// Of a time, up to its seconds; `0` stands for a digit.
constexpr std::string_view kTimeShape = "0000-00-00T00:00:00";

/// The number that stands at `at`.
int TwoDigits(std::string_view text, std::size_t at) {
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

}  // namespace

bool IsTimestamp(std::string_view text) {
  if (text.size() <= kTimeShape.size()) return false;
  for (std::size_t i = 0; i < kTimeShape.size(); ++i) {
    const bool is_digit = IsDigit(text[i]);
    if (kTimeShape[i] == '0' ? !is_digit : text[i] != kTimeShape[i])
      return false;
  }
  const int month = TwoDigits(text, 5);
  const int day = TwoDigits(text, 8);
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  if (TwoDigits(text, 11) > 23 || TwoDigits(text, 14) > 59 ||
      TwoDigits(text, 17) > 60) {
    return false;
  }
  std::string_view rest = text.substr(kTimeShape.size());
  if (rest.front() == '.') {
    const std::size_t end = rest.find_first_not_of("0123456789", 1);
    if (end == std::string_view::npos || end == 1) return false;
    rest.remove_prefix(end);
  }
  if (rest == "Z") return true;
  return rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') &&
         IsDigit(rest[1]) && IsDigit(rest[2]) && rest[3] == ':' &&
         IsDigit(rest[4]) && IsDigit(rest[5]);
}

std::optional<std::int64_t> UnixSecondsOf(std::string_view text) {
  if (!IsTimestamp(text)) return std::nullopt;
  const int year = TwoDigits(text, 0) * 100 + TwoDigits(text, 2);
  const std::chrono::sys_days days =
      std::chrono::year(year) /
      std::chrono::month(static_cast<unsigned>(TwoDigits(text, 5))) /
      std::chrono::day(static_cast<unsigned>(TwoDigits(text, 8)));
  std::int64_t seconds = std::chrono::seconds(days.time_since_epoch()).count() +
                         TwoDigits(text, 11) * 3600 + TwoDigits(text, 14) * 60 +
                         TwoDigits(text, 17);
  if (text.back() == 'Z') return seconds;
  const std::string_view zone = text.substr(text.size() - 6);
  const int offset = TwoDigits(zone, 1) * 3600 + TwoDigits(zone, 4) * 60;
  return zone[0] == '+' ? seconds - offset : seconds + offset;
}

std::string DecodeTimestamp(const Field& field) {
  std::string text = field.StringOr("");
  if (!text.empty() && !IsTimestamp(text)) {
    field.Error(fmt::format("{} is not a time such as 2026-01-31T12:00:00Z",
                            Quoted(text)));
  }
  return text;
}

ObjectMeta DecodeMeta(const Field& root, Scope scope) {
  ObjectMeta metadata;
  const Field field = root["metadata"];
  if (!field.RequireMap()) return metadata;
  const Field name = field["name"];
  metadata.name = name.StringOr("");
  if (metadata.name.empty() && !(name.IsPresent() && !name.IsString())) {
    name.Error("is required");
  }
  const std::string ns = field["namespace"].StringOr("");
  if (scope == Scope::kNamespace) metadata.ns = ns.empty() ? "default" : ns;
  metadata.uid = field["uid"].StringOr("");
  field["uid"].Check(CheckUid(metadata.uid));
  metadata.creation_timestamp = DecodeTimestamp(field["creationTimestamp"]);
  metadata.deletion_timestamp = DecodeTimestamp(field["deletionTimestamp"]);
  metadata.labels = field["labels"].StringMap();
  metadata.annotations = field["annotations"].StringMap();
  for (const Field& item : field["ownerReferences"].Items()) {
    if (!item.RequireMap()) continue;
    OwnerReference owner;
    owner.api_version = item["apiVersion"].StringOr("");
    owner.kind = item["kind"].StringOr("");
    owner.name = item["name"].StringOr("");
    owner.uid = item["uid"].StringOr("");
    owner.controller = item["controller"].BoolOr(false);
    owner.blocks_owner_deletion = item["blockOwnerDeletion"].BoolOr(false);
    metadata.owner_references.push_back(std::move(owner));
  }
  for (const Field& item : field["finalizers"].AsRemarks().Items()) {
    if (item.IsString()) metadata.finalizers.push_back(item.StringOr(""));
  }
  return metadata;
}

void CheckMeta(const Field& root, const ObjectMeta& metadata) {
  const Field field = root["metadata"];
  // A missing name has been reported.
  if (!metadata.name.empty()) {
    field["name"].Check(CheckSubdomain(metadata.name));
  }
  if (!metadata.ns.empty()) field["namespace"].Check(CheckLabel(metadata.ns));
  int controllers = 0;
  for (const OwnerReference& owner : metadata.owner_references) {
    if (owner.uid.empty() || owner.name.empty() || owner.kind.empty()) {
      field["ownerReferences"].Error("an owner needs a kind, a name and a uid");
    }
    if (owner.controller) ++controllers;
  }
  if (controllers > 1) {
    field["ownerReferences"].Error(fmt::format(
        "{} owners are the controller, at most 1 can be", controllers));
  }
}

std::string TimestampOf(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace devmgr::api
