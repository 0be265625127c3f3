// SPDX-License-Identifier: Apache-2.0
//
// Reading JSON that a Go program wrote, with errors that name the place.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/value.h"
#include "common/status.h"

namespace devmgr::kubelet_checkpoint {

/// Bytes of a file that are looked at. The kubelet of a node with a thousand
/// pods of four containers with eight devices each writes about four million.
inline constexpr std::size_t kMaxFileBytes = std::size_t{32} << 20;

/// The object that `text` is.
///   DataLoss  larger than kMaxFileBytes, not UTF-8, not one JSON object, with
///             a key twice in one object, or beyond the limits of
///             api/tree_builder.h on depth and on the number of values
absl::StatusOr<api::ValuePtr> ParseObject(std::string_view text);

/// A place in a parsed file, whether or not something stands there. What is
/// read follows `encoding/json`: unknown keys are ignored, keys match without
/// regard to case, a missing value is the zero value. But null is taken for
/// lists and objects only, where the kubelet writes it for a nil one.
///
/// All errors are DataLoss and begin with the path of the place. Borrows the
/// parsed file.
class JsonField {
 public:
  /// `value` is nullptr where nothing stands.
  JsonField(const api::Value* value, std::string path)
      : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool IsAbsent() const { return value_ == nullptr; }
  bool IsNil() const {
    return IsAbsent() || value_->kind == api::Value::Kind::kNull;
  }
  bool IsList() const {
    return !IsAbsent() && value_->kind == api::Value::Kind::kList;
  }
  bool IsObject() const {
    return !IsAbsent() && value_->kind == api::Value::Kind::kMap;
  }

  /// The member of an object; nothing stands there when the key is missing.
  /// This must be an object, or be absent; or keys that differ in case only
  /// are an error.
  absl::StatusOr<JsonField> Member(std::string_view key) const;

  absl::StatusOr<std::string> Text() const;
  absl::StatusOr<std::uint64_t> Number() const;
  /// Nothing for null and where nothing stands.
  absl::StatusOr<std::optional<std::string>> OptionalText() const;
  /// Padded base64 in its one canonical form, as bytes.
  absl::StatusOr<std::optional<std::string>> Bytes() const;

  absl::Status Error(std::string_view message) const {
    return DataLossError("{}: {}", path_, message);
  }
  absl::Status WrongKind(std::string_view wanted) const;
  /// Of the place of a checksum, in the kubelet's words.
  absl::Status Corrupted(std::uint64_t in_file, std::uint64_t computed) const {
    return DataLossError(
        "{}: checkpoint is corrupted: {} in the file, {} computed from its "
        "data",
        path_, in_file, computed);
  }

  /// What a list has, by `read`, which gets a JsonField and returns a StatusOr;
  /// nothing for null and where nothing stands.
  template <typename Read>
  auto List(Read read) const -> absl::StatusOr<
      std::optional<std::vector<std::decay_t<decltype(*read(*this))>>>> {
    std::optional<std::vector<std::decay_t<decltype(*read(*this))>>> list;
    if (IsNil()) return list;
    if (!IsList()) return WrongKind("a list");
    list.emplace();
    list->reserve(value_->items.size());
    for (const api::ValuePtr& item : value_->items) {
      DEVMGR_ASSIGN_OR_RETURN(
          auto read_item,
          read(JsonField(item.get(),
                         fmt::format("{}[{}]", path_, list->size()))));
      list->push_back(std::move(read_item));
    }
    return list;
  }

  /// What an object has by key, as List has it. `Key` is made of a text.
  template <typename Key, typename Read>
  auto Map(Read read) const -> absl::StatusOr<
      std::optional<std::map<Key, std::decay_t<decltype(*read(*this))>>>> {
    std::optional<std::map<Key, std::decay_t<decltype(*read(*this))>>> map;
    if (IsNil()) return map;
    if (!IsObject()) return WrongKind("an object");
    map.emplace();
    for (const auto& [key, member] : value_->members) {
      DEVMGR_ASSIGN_OR_RETURN(auto read_item,
                              read(JsonField(member.value.get(), Below(key))));
      map->emplace(Key{key}, std::move(read_item));
    }
    return map;
  }

 private:
  /// The path of a member of an object that has any keys.
  std::string Below(std::string_view key) const;

  const api::Value* value_;
  std::string path_;
};

/// A list of texts, or of what is made of one; nothing for null.
template <typename T = std::string>
absl::StatusOr<std::optional<std::vector<T>>> ReadTexts(
    const JsonField& field) {
  return field.List([](const JsonField& item) -> absl::StatusOr<T> {
    // Unlike a member, an item that is there has to be a text.
    DEVMGR_ASSIGN_OR_RETURN(std::string text, item.Text());
    return T{std::move(text)};
  });
}

}  // namespace devmgr::kubelet_checkpoint
