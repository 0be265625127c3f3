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
  kQuotedIdent,  ///< Between backquotes, which `text` lacks.
  kInt,          ///< Digits in `text`; its sign is the parser's to find.
  kFloat,
  kLiteral,   ///< `value`: uint, string, bytes, true, false, null.
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

/// The tokens of `text`, which is UTF-8, with one of kind kEnd at last.
std::variant<std::vector<Token>, Problem> Tokenize(std::string_view text);

}  // namespace devmgr::cel
