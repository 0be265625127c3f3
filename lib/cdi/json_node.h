// SPDX-License-Identifier: Apache-2.0
//
// Editing JSON text without touching what is not edited: blanks, the order of
// members, and numbers stay as they were written.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cdi/json_put.h"

namespace devmgr::cdi {

/// A value of a JSON text. It is taken apart one level at a time, as far as
/// it is read. Borrows the text. Thread-bound.
class JsonNode {
 public:
  /// The text's value.
  ///   InvalidArgument  the text is not JSON
  static absl::StatusOr<JsonNode> Parse(std::string_view text);
  /// A new value.
  ///   InvalidArgument  as TextOf
  static absl::StatusOr<JsonNode> Make(const Json& json);

  bool IsObject() const { return Opening() == '{'; }
  bool IsList() const { return Opening() == '['; }
  bool IsNull() const { return Opening() == 'n'; }

  /// The value itself, to be read.
  Json Read() const;

  /// The value of a member; nullptr when there is none, or null. Valid until
  /// this object changes.
  ///   InvalidArgument  this is no object, or the member is there twice
  absl::StatusOr<JsonNode*> Find(std::string_view key);

  /// The member; one that is not there, or is null, becomes `empty`, a `{}` or
  /// a `[]`, and one of another type is an error.
  ///   InvalidArgument  as Find, or the member has another type
  absl::StatusOr<JsonNode*> Object(std::string_view key) {
    return FindOrAdd(key, "{}");
  }
  absl::StatusOr<JsonNode*> List(std::string_view key) {
    return FindOrAdd(key, "[]");
  }

  /// Replaces the member, or adds it at the end.
  ///   InvalidArgument  as Find
  absl::Status Set(std::string_view key, JsonNode value);

  // Of a list:
  std::size_t size() { return Values().size(); }
  JsonNode& operator[](std::size_t index) { return Values()[index]; }
  void Append(JsonNode value) { Add("", std::move(value)); }
  void Erase(std::size_t index);
  /// Puts the values in another order: `order[i]` is the index of what comes
  /// to stand at `i`.
  void Permute(const std::vector<std::size_t>& order);

  /// Adds the text of this value.
  void AppendTo(std::string* out) const;

 private:
  /// What stands around a value of a list or an object: `lead key VALUE trail`,
  /// where `key` has the colon and the blanks about it.
  struct Frame {
    std::string_view lead;
    std::string key;
    std::string_view trail;
  };

  explicit JsonNode(std::string_view text) : text_(text) {}

  char Opening() const { return text_.front(); }
  std::vector<JsonNode>& Values();
  void Open();
  absl::StatusOr<JsonNode*> FindOrAdd(std::string_view key,
                                      std::string_view empty);
  void Add(std::string key, JsonNode value);

  std::string_view text_;  ///< Without blanks around it.
  /// What `text_` is part of, if it is new. Shared, so that it stays where it
  /// is when this moves.
  std::shared_ptr<const std::string> own_;

  // Once it has been read, a list or an object is this instead; as many
  // frames as values.
  bool is_open_ = false;
  std::vector<Frame> frames_;
  std::vector<JsonNode> values_;
};

}  // namespace devmgr::cdi
