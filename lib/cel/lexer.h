// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cel/source.h"
#include "cel/value.h"

namespace devmgr::cel {

enum class TokenKind {
  kEnd,
  kIdent,
  kQuotedIdent,  ///< An identifier in backquotes; `text` is without them.
  kInt,          ///< `text` has the digits; the parser applies the sign.
  kFloat,
  kLiteral,   ///< `value` is a uint, string, bytes, bool or null.
  kOperator,  ///< Also brackets, commas and `in`.
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t offset = 0;
  std::string_view text;  ///< Borrowed from the expression.
  Value value;

  bool Is(std::string_view op) const {
    return kind == TokenKind::kOperator && text == op;
  }
};

/// Splits `text`, which must be UTF-8, into tokens. The last one has the kind
/// kEnd.
std::variant<std::vector<Token>, Problem> Tokenize(std::string_view text);

}  // namespace devmgr::cel
