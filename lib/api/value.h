// SPDX-License-Identifier: Apache-2.0
//
// A parsed document: what YAML and JSON have in common, with line numbers.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::api {

struct Value;
/// Shared, since an alias is another reference to the value of its anchor.
using ValuePtr = std::shared_ptr<const Value>;

/// An entry of a map; the line is the key's.
struct Member {
  ValuePtr value;
  int line = 0;
};

struct Value {
  enum class Kind { kNull, kBool, kInteger, kFloat, kString, kList, kMap };

  Kind kind = Kind::kNull;
  int line = 0;  ///< From 1.
  /// Scalars: the text. Integers are decimal; bools are as written, since a
  /// key such as `y` means its text.
  std::string text;
  bool flag = false;  ///< What a bool means.
  std::vector<ValuePtr> items;
  std::map<std::string, Member, std::less<>> members;

  /// What the limits count: an estimate of bytes, aliases expanded.
  std::size_t weight = 0;
  int height = 0;             ///< Levels of lists and maps, aliases expanded.
  bool is_merge_key = false;  ///< A plain `<<` in YAML.

  /// The member's value, or nullptr.
  const Value* Find(std::string_view key) const {
    const auto found = members.find(key);
    return found == members.end() ? nullptr : found->second.value.get();
  }
};

/// The line of the value at `path`, as in `spec.containers[0].name` or
/// `limits[example.com/gpu]`; where the path leads nowhere, the line of the
/// deepest value on it that exists.
int LineAt(const Value& root, std::string_view path);

}  // namespace devmgr::api
