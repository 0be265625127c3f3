// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/expressions.h"
#include "api/problems.h"
#include "api/value.h"

namespace devmgr::api {

/// A place in a document, whether or not something stands there: typed access
/// that reports wrong types, with line and path, and goes on. Null counts as
/// absent. Borrows the document and the Problems.
class Field {
 public:
  Field(const Value& root, std::string path, Problems& problems)
      : value_(&root),
        line_(root.line),
        path_(std::move(path)),
        problems_(&problems) {}

  bool IsPresent() const {
    return value_ != nullptr && value_->kind != Value::Kind::kNull;
  }
  bool IsString() const {
    return value_ != nullptr && value_->kind == Value::Kind::kString;
  }
  int line() const { return line_; }
  const std::string& path() const { return path_; }
  /// What stands here; nullptr when the field is absent.
  const Value* value() const { return value_; }

  /// The member `key`; absent, without a report, when this is no map.
  Field operator[](std::string_view key) const;

  /// Whether this is a map; anything else present is an error.
  bool IsMap() const;
  /// As IsMap, but absence is an error as well.
  bool RequireMap() const;
  bool IsList() const;

  /// The entries of a list; nothing when absent. Null entries are passed on.
  std::vector<Field> Items() const;
  /// The entries of a map by key, null ones too; nothing when absent.
  std::vector<std::pair<std::string, Field>> Members() const;

  /// The scalar, or nothing when it is absent or, after a report, mistyped.
  std::optional<std::string> AsString() const;
  std::optional<bool> AsBool() const;
  std::optional<std::int64_t> AsInteger(
      std::int64_t min = std::numeric_limits<std::int64_t>::min(),
      std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  std::optional<Quantity> AsQuantity() const;

  std::string StringOr(std::string_view otherwise) const {
    return AsString().value_or(std::string(otherwise));
  }
  bool BoolOr(bool otherwise) const { return AsBool().value_or(otherwise); }

  /// A map of strings such as labels; a null entry is an empty string.
  std::map<std::string, std::string> StringMap() const;
  /// A map of quantities such as limits; null entries are left out.
  std::map<std::string, Quantity> QuantityMap() const;

  /// The same place, where what is wrong, there and below, is only remarked
  /// on: a warning instead of an error.
  Field AsRemarks() const {
    Field field = *this;
    field.is_lenient_ = true;
    return field;
  }

  void Error(std::string_view message) const;
  void Warn(std::string_view message) const;
  /// Reports `problem`, as the name checks return it, unless it is empty.
  void Check(std::string_view problem) const;
  /// Has the CEL expression that stands here checked.
  void CheckExpression(std::string_view text, ExpressionKind kind) const;

 private:
  /// A place below this one.
  Field Below(const Value* value, int line, std::string path) const {
    Field field = *this;
    field.value_ = value;
    field.line_ = line;
    field.path_ = std::move(path);
    return field;
  }

  void WrongType(std::string_view wanted) const;

  const Value* value_;
  int line_;
  std::string path_;
  Problems* problems_;
  bool is_lenient_ = false;
};

/// `base.key`, or `key` alone below the root.
std::string JoinPath(std::string_view base, std::string_view key);

}  // namespace devmgr::api
