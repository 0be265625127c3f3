// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// How many bytes a string literal has at the beginning of `text`, its prefixes
/// `r` and `b` and its quotes included. 0 when none begins or it has no end.
std::size_t StringLiteralSize(std::string_view text);

/// What a literal of StringLiteralSize() stands for.
struct StringLiteral {
  bool is_bytes = false;
  std::string value;
};
/// Nothing when an escape sequence is wrong.
std::optional<StringLiteral> ReadStringLiteral(std::string_view literal);

}  // namespace devmgr::cel
