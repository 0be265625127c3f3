// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/json_field.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>

#include <utility>

#include "api/parser.h"
#include "api/quote.h"
#include "common/foreign_json.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using Kind = api::Value::Kind;

std::string_view KindText(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInteger:
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "an object";
  }
  return "nothing";
}

absl::string_view AsAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::StatusOr<api::ValuePtr> ParseObject(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return DataLossError("{} bytes, at most {} are read", text.size(),
                         kMaxFileBytes);
  }
  if (const std::size_t at = api::FindInvalidUtf8(text);
      at != std::string_view::npos) {
    return DataLossError("not UTF-8 from byte {} of {} on", at, text.size());
  }
  if (HasNul(text)) {
    return DataLossError("a NUL byte at byte {} of {}", text.find('\0'),
                         text.size());
  }
  bool is_syntax_error = false;
  api::ParsedText parsed = api::ParseJson(text, is_syntax_error);
  if (!parsed.error.empty()) {
    return DataLossError("{} ({} bytes)", parsed.error, text.size());
  }
  if (parsed.documents.size() != 1 ||
      parsed.documents.front()->kind != Kind::kMap) {
    return DataLossError("one JSON object is expected in its {} bytes",
                         text.size());
  }
  return std::move(parsed.documents.front());
}

absl::StatusOr<JsonField> JsonField::Member(std::string_view key) const {
  std::string path =
      path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (IsAbsent()) return JsonField(nullptr, std::move(path));
  if (!IsObject()) return WrongKind("an object");
  const api::Value* found = nullptr;
  for (const auto& [name, member] : value_->members) {
    if (!absl::EqualsIgnoreCase(name, AsAbsl(key))) continue;
    if (found != nullptr) {
      return DataLossError("{}: two keys differ in case only", path);
    }
    found = member.value.get();
  }
  return JsonField(found, std::move(path));
}

absl::StatusOr<std::string> JsonField::Text() const {
  if (IsAbsent()) return std::string();
  if (value_->kind != Kind::kString) return WrongKind("a string");
  return value_->text;
}

absl::StatusOr<std::uint64_t> JsonField::Number() const {
  if (IsAbsent()) return 0;
  std::uint64_t number = 0;
  if (value_->kind != Kind::kInteger ||
      !absl::SimpleAtoi(value_->text, &number)) {
    return WrongKind("a number from 0 to 18446744073709551615");
  }
  return number;
}

absl::StatusOr<std::optional<std::string>> JsonField::OptionalText() const {
  if (IsNil()) return std::optional<std::string>();
  DEVMGR_ASSIGN_OR_RETURN(std::string text, Text());
  return std::optional<std::string>(std::move(text));
}

absl::StatusOr<std::optional<std::string>> JsonField::Bytes() const {
  DEVMGR_ASSIGN_OR_RETURN(const auto text, OptionalText());
  if (!text) return std::optional<std::string>();
  std::string bytes;
  // Abseil takes blanks, and leaves out padding, too: what was not written as
  // the kubelet writes it could not be written again.
  if (!absl::Base64Unescape(*text, &bytes) ||
      absl::Base64Escape(bytes) != *text) {
    return Error("not base64 with padding");
  }
  return std::optional<std::string>(std::move(bytes));
}

absl::Status JsonField::WrongKind(std::string_view wanted) const {
  const bool is_number = value_ != nullptr && (value_->kind == Kind::kInteger ||
                                               value_->kind == Kind::kFloat);
  const std::string found = value_ == nullptr ? "nothing"
                            : is_number       ? api::Quoted(value_->text)
                                        : std::string(KindText(value_->kind));
  return DataLossError("{}: {} is expected, not {}",
                       path_.empty() ? "the file" : path_, wanted, found);
}

std::string JsonField::Below(std::string_view key) const {
  return fmt::format("{}[{}]", path_, api::Quoted(key));
}

}  // namespace devmgr::kubelet_checkpoint
