// SPDX-License-Identifier: Apache-2.0
#include "cel/parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "cel/ast_builder.h"
#include "cel/double_text.h"
#include "cel/lexer.h"
#include "cel/macros.h"
#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

constexpr std::array<std::string_view, 18> kReserved = {
    "as",        "break",  "const",  "continue", "else",  "for",
    "function",  "if",     "import", "let",      "loop",  "package",
    "namespace", "return", "var",    "void",     "while", "in"};

struct BinaryOperator {
  std::string_view text;
  std::string_view function;
  int precedence;
};

constexpr int kRelation = 1;
constexpr int kSum = 2;
constexpr int kProduct = 3;
constexpr std::array kBinary = {
    BinaryOperator{"<", "_<_", kRelation},
    BinaryOperator{"<=", "_<=_", kRelation},
    BinaryOperator{">", "_>_", kRelation},
    BinaryOperator{">=", "_>=_", kRelation},
    BinaryOperator{"==", "_==_", kRelation},
    BinaryOperator{"!=", "_!=_", kRelation},
    BinaryOperator{"in", "@in", kRelation},
    BinaryOperator{"+", "_+_", kSum},
    BinaryOperator{"-", "_-_", kSum},
    BinaryOperator{"*", "_*_", kProduct},
    BinaryOperator{"/", "_/_", kProduct},
    BinaryOperator{"%", "_%_", kProduct},
};

/// The operands of a chain of one operator, such as &&. They are combined to a
/// balanced tree, so that a long list of conditions does not make a deep tree.
struct Chain {
  std::vector<ExprId> terms;
  /// Offsets of the operators between the terms.
  std::vector<std::uint32_t> offsets;
};

/// A parser by recursive descent with one method for each rule of the grammar.
/// Each method returns a node, even after a problem; from then on all tokens
/// read as the end of the text.
class Parser {
 public:
  Parser(std::vector<Token> tokens, const ParseOptions& options)
      : tokens_(std::move(tokens)), options_(options) {}

  std::variant<Ast, Problem> Run() {
    const ExprId root = ParseExpr();
    if (Peek().kind != TokenKind::kEnd) Unexpected("");
    if (builder_.problem()) return *builder_.problem();
    builder_.ast().root = root;
    return std::move(builder_.ast());
  }

 private:
  static bool IsNumber(const Token& token) {
    return token.kind == TokenKind::kInt || token.kind == TokenKind::kFloat;
  }
  const Token& Peek(std::size_t ahead = 0) const {
    return builder_.problem()
               ? tokens_.back()
               : tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token Take() {
    Token token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool TakeIf(std::string_view op) {
    if (!Peek().Is(op)) return false;
    Take();
    return true;
  }
  void Expect(std::string_view op) {
    if (!TakeIf(op)) Unexpected(api::Quoted(op));
  }

  ExprId Unexpected(std::string_view expected) {
    const Token& token = Peek();
    std::string message =
        token.kind == TokenKind::kEnd
            ? "syntax error: the expression ends here"
            : "syntax error: unexpected " + api::Quoted(token.text);
    if (!expected.empty()) {
      message += ", ";
      message += expected;
      message += " is expected";
    }
    return Fail(token.offset, std::move(message));
  }
  ExprId Fail(std::uint32_t offset, std::string message) {
    builder_.Report(offset, std::move(message));
    return builder_.Literal(offset, Value());
  }

  ExprId ParseExpr() {
    if (++depth_ > kMaxDepth) {
      Fail(Peek().offset,
           "the expression is nested too deeply: " + std::to_string(kMaxDepth) +
               " levels are permitted");
    }
    ExprId expr = ParseOr();
    if (Peek().Is("?")) {
      const std::uint32_t offset = Take().offset;
      const ExprId if_true = ParseOr();
      Expect(":");
      expr = builder_.Call(offset, "_?_:_", {expr, if_true, ParseExpr()});
    }
    --depth_;
    return expr;
  }

  ExprId ParseOr() {
    Chain chain;
    chain.terms.push_back(ParseAnd());
    while (Peek().Is("||")) {
      chain.offsets.push_back(Take().offset);
      chain.terms.push_back(ParseAnd());
    }
    return Balance("_||_", chain, 0, chain.terms.size());
  }

  ExprId ParseAnd() {
    Chain chain;
    chain.terms.push_back(ParseBinary(kRelation));
    while (Peek().Is("&&")) {
      chain.offsets.push_back(Take().offset);
      chain.terms.push_back(ParseBinary(kRelation));
    }
    return Balance("_&&_", chain, 0, chain.terms.size());
  }

  /// Combines the terms from `begin` to `end`. The depth of recursion is the
  /// logarithm of their number.
  ExprId Balance(std::string_view function, const Chain& chain,
                 std::size_t begin, std::size_t end) {
    if (end - begin == 1) return chain.terms[begin];
    const std::size_t middle = begin + (end - begin + 1) / 2;
    const ExprId left = Balance(function, chain, begin, middle);
    const ExprId right = Balance(function, chain, middle, end);
    return builder_.Call(chain.offsets[middle - 1], function, {left, right});
  }

  ExprId ParseBinary(int precedence) {
    ExprId left =
        precedence == kProduct ? ParseUnary() : ParseBinary(precedence + 1);
    for (;;) {
      const auto* op = std::find_if(
          kBinary.begin(), kBinary.end(), [&](const BinaryOperator& known) {
            return known.precedence == precedence && Peek().Is(known.text);
          });
      if (op == kBinary.end()) return left;
      const std::uint32_t offset = Take().offset;
      const ExprId right =
          precedence == kProduct ? ParseUnary() : ParseBinary(precedence + 1);
      left = builder_.Call(offset, op->function, {left, right});
    }
  }

  /// Signs in front of an operand cancel each other out in pairs. A single
  /// minus in front of a number is the sign of that number.
  ExprId ParseUnary() {
    for (const std::string_view sign : {"!", "-"}) {
      if (!Peek().Is(sign)) continue;
      const std::uint32_t offset = Peek().offset;
      if (sign == "-" && IsNumber(Peek(1))) break;
      std::size_t count = 0;
      for (; TakeIf(sign);) ++count;
      const ExprId term = ParseMember();
      if (count % 2 == 0) return term;
      return builder_.Call(offset, sign == "!" ? "!_" : "-_", {term});
    }
    return ParseMember();
  }

  ExprId ParseMember() {
    ExprId expr = ParsePrimary();
    for (;;) {
      if (Peek().Is(".")) {
        expr = ParseField(expr);
      } else if (Peek().Is("[")) {
        const std::uint32_t offset = Take().offset;
        const bool optional = TakeIf("?");
        const ExprId index = ParseExpr();
        Expect("]");
        expr =
            builder_.Call(offset, optional ? "_[?_]" : "_[_]", {expr, index});
      } else {
        return expr;
      }
    }
  }

  /// Parses `.name`, `.?name` or `.name(...)` after `target`.
  ExprId ParseField(ExprId target) {
    const std::uint32_t dot = Take().offset;
    const bool optional = TakeIf("?");
    const bool quoted =
        Peek().kind == TokenKind::kQuotedIdent && options_.quoted_fields;
    if (Peek().kind != TokenKind::kIdent && !quoted) {
      return Unexpected("the name of a field");
    }
    const Token name = Take();
    if (optional) {
      const ExprId field =
          builder_.Literal(name.offset, Value::Text(std::string(name.text)));
      return builder_.Call(dot, "_?._", {target, field});
    }
    if (!quoted && Peek().Is("(")) return ParseCall(name, target);
    return builder_.Select(dot, target, std::string(name.text));
  }

  /// Parses the arguments of a call, and expands the call if it is a macro.
  ExprId ParseCall(const Token& name, ExprId target, bool leading_dot = false) {
    const std::uint32_t offset = Take().offset;
    std::vector<ExprId> args;
    while (!TakeIf(")")) {
      if (!args.empty()) Expect(",");
      args.push_back(ParseExpr());
      if (builder_.problem()) return args.back();
    }
    if (options_.macros && !leading_dot) {
      if (const std::optional<ExprId> expanded =
              ExpandMacro(builder_, offset, name.text, target, args)) {
        return *expanded;
      }
    }
    return builder_.Call(offset,
                         (leading_dot ? "." : "") + std::string(name.text),
                         std::move(args), target);
  }

  ExprId ParsePrimary() {
    const Token& token = Peek();
    switch (token.kind) {
      case TokenKind::kIdent:
        return ParseName(false);
      case TokenKind::kLiteral: {
        const Token literal = Take();
        return builder_.Literal(literal.offset, literal.value);
      }
      case TokenKind::kInt:
      case TokenKind::kFloat:
        return ParseNumber(token.offset, false);
      case TokenKind::kOperator:
        return ParseBracket();
      case TokenKind::kQuotedIdent:
      case TokenKind::kEnd:
        break;
    }
    return Unexpected("an expression");
  }

  ExprId ParseBracket() {
    const std::uint32_t offset = Peek().offset;
    if (TakeIf("(")) {
      const ExprId expr = ParseExpr();
      Expect(")");
      return expr;
    }
    if (TakeIf("[")) return ParseList(offset);
    if (TakeIf("{")) return ParseMap(offset);
    if (Peek().Is("-") && IsNumber(Peek(1))) {
      Take();
      return ParseNumber(offset, true);
    }
    if (Peek().Is(".") && Peek(1).kind == TokenKind::kIdent) {
      Take();
      return ParseName(true);
    }
    return Unexpected("an expression");
  }

  ExprId ParseName(bool leading_dot) {
    const Token name = Take();
    if (IsMessage()) {
      return Fail(name.offset, "messages are not supported: " +
                                   api::Quoted(std::string(name.text) + "{}"));
    }
    if (std::find(kReserved.begin(), kReserved.end(), name.text) !=
        kReserved.end()) {
      return Fail(name.offset,
                  "reserved identifier: " + std::string(name.text));
    }
    if (Peek().Is("(")) return ParseCall(name, kNoExpr, leading_dot);
    return builder_.Ident(name.offset,
                          (leading_dot ? "." : "") + std::string(name.text));
  }

  /// Whether a brace follows the qualified name here, as in the literal of a
  /// message.
  bool IsMessage() const {
    std::size_t ahead = 0;
    while (Peek(ahead).Is(".") && Peek(ahead + 1).kind == TokenKind::kIdent) {
      ahead += 2;
    }
    return Peek(ahead).Is("{");
  }

  ExprId ParseNumber(std::uint32_t offset, bool negative) {
    const Token token = Take();
    if (token.kind == TokenKind::kFloat) {
      const std::optional<double> number = ReadDouble(token.text);
      if (!number) return Fail(offset, "invalid double literal");
      return builder_.Literal(offset,
                              Value::Double(negative ? -*number : *number));
    }
    std::string digits = negative ? "-" : "";
    const bool is_hex = token.text.substr(0, 2) == "0x";
    digits += is_hex ? token.text.substr(2) : token.text;
    std::int64_t number = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number,
                        is_hex ? 16 : 10)
            .ec != std::errc()) {
      return Fail(offset, "invalid int literal: it has more than 64 bits");
    }
    return builder_.Literal(offset, Value::Int(number));
  }

  ExprId ParseList(std::uint32_t offset) {
    std::vector<ExprId> elements;
    std::vector<bool> optional;
    while (!TakeIf("]")) {
      optional.push_back(TakeIf("?"));
      elements.push_back(ParseExpr());
      if (!Peek().Is("]")) Expect(",");
      if (builder_.problem()) break;
    }
    return builder_.List(offset, std::move(elements), std::move(optional));
  }

  ExprId ParseMap(std::uint32_t offset) {
    std::vector<ExprId> parts;
    std::vector<bool> optional;
    while (!TakeIf("}")) {
      optional.push_back(TakeIf("?"));
      parts.push_back(ParseExpr());
      Expect(":");
      parts.push_back(ParseExpr());
      if (!Peek().Is("}")) Expect(",");
      if (builder_.problem()) break;
    }
    return builder_.Map(offset, std::move(parts), std::move(optional));
  }

  std::vector<Token> tokens_;
  ParseOptions options_;
  AstBuilder builder_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::variant<Ast, Problem> Parse(std::string_view text,
                                 const ParseOptions& options) {
  if (const std::size_t bad = api::FindInvalidUtf8(text);
      bad != std::string_view::npos) {
    return Problem{static_cast<std::uint32_t>(bad),
                   "the expression is not UTF-8: byte " +
                       std::to_string(bad + 1) + " is wrong"};
  }
  if (CountCharacters(text) > kMaxTextSize) {
    return Problem{
        0,
        "the expression is too long: " + std::to_string(CountCharacters(text)) +
            " characters, the limit is " + std::to_string(kMaxTextSize)};
  }
  auto tokens = Tokenize(text);
  if (auto* problem = std::get_if<Problem>(&tokens)) return std::move(*problem);
  return Parser(std::get<std::vector<Token>>(std::move(tokens)), options).Run();
}

}  // namespace devmgr::cel
