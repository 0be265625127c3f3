// SPDX-License-Identifier: Apache-2.0
#include "api/field.h"

#include <fmt/core.h>

#include <charconv>

#include "api/quantity.h"
#include "api/quote.h"
#include "common/status.h"

namespace devmgr::api {
namespace {

/// Keys of maps come from files and may be long; paths need not be.
constexpr std::size_t kMaxKeyInPath = 320;

std::string Describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return value.flag ? "the boolean true" : "the boolean false";
    case Value::Kind::kInteger:
    case Value::Kind::kFloat:
      return "the number " + value.text.substr(0, 40);
    case Value::Kind::kString:
      return "the string " + Quoted(value.text);
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

}  // namespace

std::string JoinPath(std::string_view base, std::string_view key) {
  return base.empty() ? std::string(key) : fmt::format("{}.{}", base, key);
}

Field Field::operator[](std::string_view key) const {
  if (value_ != nullptr && value_->kind == Value::Kind::kMap) {
    const auto found = value_->members.find(key);
    if (found != value_->members.end()) {
      return Below(found->second.value.get(), found->second.line,
                   JoinPath(path_, key));
    }
  }
  return Below(nullptr, line_, JoinPath(path_, key));
}

bool Field::IsMap() const {
  if (!IsPresent()) return false;
  if (value_->kind == Value::Kind::kMap) return true;
  WrongType("a map");
  return false;
}

bool Field::RequireMap() const {
  if (IsPresent()) return IsMap();
  Error(value_ == nullptr ? "is required" : "must be a map, is null");
  return false;
}

bool Field::IsList() const {
  if (!IsPresent()) return false;
  if (value_->kind == Value::Kind::kList) return true;
  WrongType("a list");
  return false;
}

std::vector<Field> Field::Items() const {
  std::vector<Field> items;
  if (!IsList()) return items;
  items.reserve(value_->items.size());
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    const Value* item = value_->items[i].get();
    items.push_back(Below(item, item->line, fmt::format("{}[{}]", path_, i)));
  }
  return items;
}

std::vector<std::pair<std::string, Field>> Field::Members() const {
  std::vector<std::pair<std::string, Field>> members;
  if (!IsMap()) return members;
  members.reserve(value_->members.size());
  for (const auto& [key, member] : value_->members) {
    members.emplace_back(
        key,
        Below(member.value.get(), member.line,
              fmt::format("{}[{}]", path_,
                          std::string_view(key).substr(0, kMaxKeyInPath))));
  }
  return members;
}

std::optional<std::string> Field::AsString() const {
  if (!IsPresent()) return std::nullopt;
  if (value_->kind == Value::Kind::kString) return value_->text;
  WrongType("a string");
  return std::nullopt;
}

std::optional<bool> Field::AsBool() const {
  if (!IsPresent()) return std::nullopt;
  if (value_->kind == Value::Kind::kBool) return value_->flag;
  WrongType("a boolean");
  return std::nullopt;
}

std::optional<std::int64_t> Field::AsInteger(std::int64_t min,
                                             std::int64_t max) const {
  if (!IsPresent()) return std::nullopt;
  if (value_->kind != Value::Kind::kInteger) {
    WrongType("an integer");
    return std::nullopt;
  }
  std::string_view text = value_->text;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() &&
      number >= min && number <= max) {
    return number;
  }
  Error(fmt::format("{} is out of range, {} to {} are allowed",
                    text.substr(0, 40), min, max));
  return std::nullopt;
}

std::optional<Quantity> Field::AsQuantity() const {
  if (!IsPresent()) return std::nullopt;
  switch (value_->kind) {
    case Value::Kind::kString:
    case Value::Kind::kInteger:
    case Value::Kind::kFloat:
      break;
    default:
      WrongType("a quantity");
      return std::nullopt;
  }
  absl::StatusOr<Quantity> quantity = ParseQuantity(value_->text);
  if (quantity.ok()) return *std::move(quantity);
  Error(MessageOf(quantity.status()));
  return std::nullopt;
}

std::map<std::string, std::string> Field::StringMap() const {
  std::map<std::string, std::string> map;
  for (const auto& [key, member] : Members()) map[key] = member.StringOr("");
  return map;
}

std::map<std::string, Quantity> Field::QuantityMap() const {
  std::map<std::string, Quantity> map;
  for (const auto& [key, member] : Members()) {
    if (std::optional<Quantity> quantity = member.AsQuantity()) {
      map[key] = *std::move(quantity);
    }
  }
  return map;
}

void Field::Error(std::string_view message) const {
  if (is_lenient_) return Warn(message);
  problems_->Error(line_, path_, message);
}

void Field::Warn(std::string_view message) const {
  problems_->Warn(line_, path_, message);
}

void Field::Check(std::string_view problem) const {
  if (!problem.empty()) Error(problem);
}

void Field::CheckExpression(std::string_view text, ExpressionKind kind) const {
  if (problems_->checker() == nullptr) return;
  const auto problem = problems_->checker()->Check(text, kind);
  if (!problem) return;
  if (is_lenient_) {
    problems_->Warn(line_, path_, problem->message, problem->excerpt);
  } else {
    problems_->Error(line_, path_, problem->message, problem->excerpt);
  }
}

void Field::WrongType(std::string_view wanted) const {
  const bool quotes_help = wanted == "a string" &&
                           value_->kind != Value::Kind::kList &&
                           value_->kind != Value::Kind::kMap;
  Error(fmt::format("must be {}, is {}{}", wanted, Describe(*value_),
                    quotes_help ? " (put it in quotes)" : ""));
}

}  // namespace devmgr::api
