// SPDX-License-Identifier: Apache-2.0
//
// Looking into JSON text without parsing it: which bytes are one value, and
// which members an object has. It does not judge whether the text is JSON; what
// is taken from it for good goes through the decoders of lib/api.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace devmgr::apiserver {

/// Follows the bytes of one list or object to its end, in any cut.
/// Thread-bound.
class JsonNesting {
 public:
  /// Takes bytes up to the end of the outermost list or object, or all of them,
  /// and returns how many. It has ended when depth() is 0.
  std::size_t Take(std::string_view bytes);
  std::size_t depth() const { return depth_; }

 private:
  /// Takes bytes from `at` up to the end of the string that has begun, and
  /// returns where that is.
  std::size_t TakeString(std::string_view bytes, std::size_t at);

  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

inline bool IsJsonSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// The value of the member `key` of the object that `object` begins with: the
/// first one; of a text that was cut, as far as it was read. Empty when there
/// is none.
std::string_view FindMember(std::string_view object, std::string_view key);

/// What a JSON string means, without its quotes; a string that was cut means
/// what there is of it, any other value nothing. Characters beyond ASCII that
/// are written as `\u....` become `?`.
std::string StringOf(std::string_view value);

/// StringOf of a member.
std::string StringMember(std::string_view object, std::string_view key);

/// `kind 'namespace/name'` of the object at the beginning of a text that may be
/// cut, as far as the text says it; never empty, and safe to print.
std::string DescribeObject(std::string_view object);

}  // namespace devmgr::apiserver
