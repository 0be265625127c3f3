// SPDX-License-Identifier: Apache-2.0
#include "cel/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "api/quote.h"
#include "cel/string_literal.h"
#include "cel/utf8.h"
#include "common/ascii.h"

namespace devmgr::cel {
namespace {

bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsIdentStart(char c) { return IsLetter(c) || c == '_'; }
bool IsIdentPart(char c) { return IsIdentStart(c) || IsDigit(c); }

// An operator comes before its own beginnings, so that the longest one is
// found.
constexpr std::array<std::string_view, 24> kOperators = {
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}",
    "(",  ")",  ".",  ",",  "-",  "!",  "?", ":", "+", "*", "/", "%"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::variant<std::vector<Token>, Problem> Run() {
    for (;;) {
      SkipBlanks();
      Token token;
      token.offset = static_cast<std::uint32_t>(at_);
      if (at_ == text_.size()) {
        tokens_.push_back(std::move(token));
        return std::move(tokens_);
      }
      if (!Take(token)) {
        if (problem_.empty()) {
          problem_ = "syntax error: unexpected " +
                     api::Quoted(Rest().substr(0, CharacterSize(Rest())));
        }
        return Problem{token.offset, problem_};
      }
      tokens_.push_back(std::move(token));
    }
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  char Peek(std::size_t ahead) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void SkipBlanks() {
    constexpr std::string_view kBlanks = "\t \r\n\f";
    while (at_ < text_.size()) {
      if (kBlanks.find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (Rest().substr(0, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  bool Take(Token& token) {
    if (StartsString()) return TakeString(token);
    if (IsIdentStart(Peek(0))) return TakeWord(token);
    if (IsDigit(Peek(0)) || (Peek(0) == '.' && IsDigit(Peek(1)))) {
      return TakeNumber(token);
    }
    if (Peek(0) == '`') return TakeQuotedIdent(token);
    for (const std::string_view op : kOperators) {
      if (Rest().substr(0, op.size()) == op) {
        return Finish(token, TokenKind::kOperator, op.size());
      }
    }
    return false;
  }

  bool Finish(Token& token, TokenKind kind, std::size_t size) {
    token.kind = kind;
    token.text = Rest().substr(0, size);
    at_ += size;
    return true;
  }

  bool StartsString() const {
    std::size_t ahead = 0;
    if (Peek(ahead) == 'b' || Peek(ahead) == 'B') ++ahead;
    if (Peek(ahead) == 'r' || Peek(ahead) == 'R') ++ahead;
    return Peek(ahead) == '"' || Peek(ahead) == '\'';
  }

  bool TakeString(Token& token) {
    const std::size_t size = StringLiteralSize(Rest());
    if (size == 0) {
      problem_ = "syntax error: the string has no end";
      return false;
    }
    std::optional<StringLiteral> literal =
        ReadStringLiteral(Rest().substr(0, size));
    if (!literal) {
      problem_ = "invalid escape sequence in the string";
      return false;
    }
    token.value = literal->is_bytes ? Value::OfBytes(std::move(literal->value))
                                    : Value::Text(std::move(literal->value));
    return Finish(token, TokenKind::kLiteral, size);
  }

  bool TakeWord(Token& token) {
    std::size_t size = 1;
    while (IsIdentPart(Peek(size))) ++size;
    const std::string_view word = Rest().substr(0, size);
    if (word == "in") return Finish(token, TokenKind::kOperator, size);
    const bool is_bool = word == "true" || word == "false";
    if (!is_bool && word != "null") {
      return Finish(token, TokenKind::kIdent, size);
    }
    if (is_bool) token.value = Value::Bool(word == "true");
    return Finish(token, TokenKind::kLiteral, size);
  }

  bool TakeQuotedIdent(Token& token) {
    std::size_t size = 1;
    while (IsIdentPart(Peek(size)) ||
           (Peek(size) != '\0' && std::string_view(".-/ ").find(Peek(size)) !=
                                      std::string_view::npos)) {
      ++size;
    }
    if (size == 1 || Peek(size) != '`') return false;
    Finish(token, TokenKind::kQuotedIdent, size + 1);
    token.text = token.text.substr(1, size - 1);
    return true;
  }

  std::size_t Digits(std::size_t from) const {
    std::size_t size = from;
    while (IsDigit(Peek(size))) ++size;
    return size;
  }

  /// The end of the exponent that begins at `from`; `from` itself when there is
  /// none.
  std::size_t Exponent(std::size_t from) const {
    if (Peek(from) != 'e' && Peek(from) != 'E') return from;
    const std::size_t sign = Peek(from + 1) == '+' || Peek(from + 1) == '-';
    const std::size_t end = Digits(from + 1 + sign);
    return end == from + 1 + sign ? from : end;
  }

  bool TakeNumber(Token& token) {
    std::size_t size = 0;
    if (Peek(0) == '0' && Peek(1) == 'x' && IsHexDigit(Peek(2))) {
      for (size = 2; IsHexDigit(Peek(size));) ++size;
    } else {
      size = Digits(0);
      std::size_t end = size;
      if (Peek(end) == '.' && IsDigit(Peek(end + 1))) end = Digits(end + 1);
      end = Exponent(end);
      if (end > size) return Finish(token, TokenKind::kFloat, end);
    }
    if (Peek(size) == 'u' || Peek(size) == 'U') return TakeUint(token, size);
    return Finish(token, TokenKind::kInt, size);
  }

  bool TakeUint(Token& token, std::size_t size) {
    std::string_view digits = Rest().substr(0, size);
    const bool is_hex = digits.substr(0, 2) == "0x";
    if (is_hex) digits.remove_prefix(2);
    std::uint64_t number = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number,
                        is_hex ? 16 : 10)
            .ec != std::errc()) {
      problem_ = "invalid uint literal: it has more than 64 bits";
      return false;
    }
    token.value = Value::Uint(number);
    return Finish(token, TokenKind::kLiteral, size + 1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  std::string problem_;
};

}  // namespace

std::variant<std::vector<Token>, Problem> Tokenize(std::string_view text) {
  return Lexer(text).Run();
}

}  // namespace devmgr::cel
