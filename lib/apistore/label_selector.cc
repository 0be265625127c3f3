// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "api/names.h"
#include "apistore/selectors.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

using Operator = LabelSelector::Operator;
using Term = LabelSelector::Term;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsSign(char c) {
  return std::string_view("=!(),<>").find(c) != std::string_view::npos;
}

/// Words, and the signs `,` `(` `)` `!` `=` `==` `!=` `<` `>`. Empty at the
/// end.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  std::string_view Peek() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
    std::size_t length = 0;
    if (rest_.empty()) return {};
    if (rest_.substr(0, 2) == "==" || rest_.substr(0, 2) == "!=") {
      length = 2;
    } else if (IsSign(rest_.front())) {
      length = 1;
    } else {
      while (length < rest_.size() && !IsSpace(rest_[length]) &&
             !IsSign(rest_[length])) {
        ++length;
      }
    }
    return rest_.substr(0, length);
  }
  std::string_view Next() {
    const std::string_view word = Peek();
    rest_.remove_prefix(word.size());
    return word;
  }
  bool Take(std::string_view sign) {
    if (Peek() != sign) return false;
    Next();
    return true;
  }

 private:
  std::string_view rest_;
};

bool IsWord(std::string_view token) {
  return !token.empty() && !IsSign(token.front());
}

absl::StatusOr<std::string> ReadValue(Lexer& lexer) {
  // A value may be empty: `a=`, `a in (,b)`.
  if (!IsWord(lexer.Peek())) return std::string();
  std::string value(lexer.Next());
  if (const std::string problem = api::CheckLabelValue(value);
      !problem.empty()) {
    return InvalidArgumentError("{}", problem);
  }
  return value;
}

absl::StatusOr<std::vector<std::string>> ReadSet(Lexer& lexer) {
  if (!lexer.Take("(")) {
    return InvalidArgumentError("found '{}', expected: '('", lexer.Peek());
  }
  std::vector<std::string> values;
  do {
    DEVMGR_ASSIGN_OR_RETURN(std::string value, ReadValue(lexer));
    values.push_back(std::move(value));
  } while (lexer.Take(","));
  if (!lexer.Take(")")) {
    return InvalidArgumentError("found '{}', expected: ',' or ')'",
                                lexer.Peek());
  }
  return values;
}

std::optional<std::int64_t> NumberIn(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

absl::Status ReadOperator(Lexer& lexer, Term& term) {
  const std::string_view next = lexer.Peek();
  if (next.empty() || next == ",") return absl::OkStatus();
  const std::string op(lexer.Next());
  if (op == "in" || op == "notin") {
    term.op = op == "in" ? Operator::kIn : Operator::kNotIn;
    DEVMGR_ASSIGN_OR_RETURN(term.values, ReadSet(lexer));
    return absl::OkStatus();
  }
  if (op == "=" || op == "==") {
    term.op = Operator::kIn;
  } else if (op == "!=") {
    term.op = Operator::kNotIn;
  } else if (op == ">" || op == "gt") {
    term.op = Operator::kGreater;
  } else if (op == "<" || op == "lt") {
    term.op = Operator::kLess;
  } else {
    return InvalidArgumentError(
        "found '{}', expected: in, notin, =, ==, !=, gt, lt", op);
  }
  DEVMGR_ASSIGN_OR_RETURN(std::string value, ReadValue(lexer));
  const bool numeric =
      term.op == Operator::kGreater || term.op == Operator::kLess;
  if (numeric && !NumberIn(value).has_value()) {
    return InvalidArgumentError(
        "values[0][{}]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the "
        "value must be an integer",
        term.key, value);
  }
  term.values.push_back(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Term> ReadTerm(Lexer& lexer) {
  Term term;
  const bool absent = lexer.Take("!");
  if (!IsWord(lexer.Peek())) {
    return InvalidArgumentError("found '{}', expected: identifier",
                                lexer.Peek());
  }
  term.key = lexer.Next();
  if (const std::string problem = api::CheckQualifiedName(term.key);
      !problem.empty()) {
    return InvalidArgumentError("{}", problem);
  }
  if (absent) {
    term.op = Operator::kAbsent;
    return term;
  }
  DEVMGR_RETURN_IF_ERROR(ReadOperator(lexer, term));
  return term;
}

bool MatchesTerm(const Term& term, const Json* label) {
  const bool exists = label != nullptr && label->is_string();
  const std::string value = exists ? label->get<std::string>() : "";
  const bool listed = std::find(term.values.begin(), term.values.end(),
                                value) != term.values.end();
  switch (term.op) {
    case Operator::kIn:
      return exists && listed;
    case Operator::kNotIn:
      return !exists || !listed;
    case Operator::kExists:
      return exists;
    case Operator::kAbsent:
      return !exists;
    case Operator::kGreater:
    case Operator::kLess:
      break;
  }
  const std::optional<std::int64_t> have = NumberIn(value);
  const std::optional<std::int64_t> bound = NumberIn(term.values.front());
  if (!exists || !have.has_value() || !bound.has_value()) return false;
  return term.op == Operator::kGreater ? *have > *bound : *have < *bound;
}

}  // namespace

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  Lexer lexer(text);
  while (!lexer.Peek().empty()) {
    absl::StatusOr<Term> term = ReadTerm(lexer);
    if (!term.ok()) {
      return WithContext(term.status(), "unable to parse requirement");
    }
    selector.terms_.push_back(*std::move(term));
    if (lexer.Peek().empty()) break;
    if (!lexer.Take(",") || lexer.Peek().empty()) {
      return InvalidArgumentError(
          "unable to parse requirement: found '{}', expected: ',' or a term",
          lexer.Peek());
    }
  }
  return selector;
}

bool LabelSelector::Matches(const Json& object) const {
  if (terms_.empty()) return true;
  static const Json::json_pointer kLabels("/metadata/labels");
  const Json* labels = object.contains(kLabels) ? &object.at(kLabels) : nullptr;
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    const Json* label = nullptr;
    if (labels != nullptr && labels->is_object()) {
      if (const auto it = labels->find(term.key); it != labels->end()) {
        label = &*it;
      }
    }
    return MatchesTerm(term, label);
  });
}

}  // namespace devmgr::apistore
