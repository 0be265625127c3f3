// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// The size in bytes of the string literal that `text` begins with, its
/// prefixes `r` and `b` and its quotes included. 0 when `text` begins with no
/// string literal, or when the literal has no end.
std::size_t StringLiteralSize(std::string_view text);

/// The value of a string literal.
struct StringLiteral {
  bool is_bytes = false;
  std::string value;
};
/// Reads a literal that StringLiteralSize() has found. Returns nothing when an
/// escape sequence is wrong.
std::optional<StringLiteral> ReadStringLiteral(std::string_view literal);

}  // namespace devmgr::cel
