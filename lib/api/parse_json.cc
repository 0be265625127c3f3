// SPDX-License-Identifier: Apache-2.0
//
// JSON through nlohmann's event interface: it bounds its own stack, reports
// errors without throwing, and lets our limits hold while it reads.
#include <fmt/core.h>

#include <cstddef>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/parser.h"
#include "api/quote.h"
#include "api/tree_builder.h"

namespace devmgr::api {
namespace {

using Json = nlohmann::json;

/// Where the parser is. It knows no lines, so the iterator it reads through
/// counts them here. The count is behind by the last character read, which is
/// the one that ended a number, and so may be the line's end.
struct Position {
  std::size_t offset = 0;
  int line = 1;
  bool last_was_newline = false;

  void Advance(char c) {
    if (last_was_newline) ++line;
    last_was_newline = c == '\n';
    ++offset;
  }
};

/// Input iterator over text that keeps a Position up to date.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Position* position)
      : at_(at), position_(position) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    position_->Advance(*at_);
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  Position* position_;
};

class JsonHandler : public nlohmann::json_sax<Json> {
 public:
  JsonHandler(TreeBuilder& builder, const Position& position)
      : builder_(builder), position_(position) {}

  bool null() override { return Add(Value::Kind::kNull, ""); }
  bool boolean(bool value) override {
    return Add(Value::Kind::kBool, value ? "true" : "false", value);
  }
  bool number_integer(number_integer_t value) override {
    return Add(Value::Kind::kInteger, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(Value::Kind::kInteger, std::to_string(value));
  }
  /// Also integers beyond 64 bits; the text has them in full.
  bool number_float(number_float_t, const string_t& text) override {
    return Add(text.find_first_of(".eE") == std::string::npos
                   ? Value::Kind::kInteger
                   : Value::Kind::kFloat,
               text);
  }
  bool string(string_t& text) override {
    return Add(Value::Kind::kString, std::move(text));
  }
  bool binary(binary_t&) override { return false; }  // Not in JSON text.
  bool start_object(std::size_t) override {
    return builder_.BeginMap(position_.line);
  }
  bool key(string_t& text) override {
    return Add(Value::Kind::kString, std::move(text));
  }
  bool end_object() override { return builder_.End(); }
  bool start_array(std::size_t) override {
    return builder_.BeginList(position_.line);
  }
  bool end_array() override { return builder_.End(); }

  bool parse_error(std::size_t, const std::string&,
                   const Json::exception& error) override {
    is_syntax_error_ = true;
    std::string_view what = error.what();
    // `[json.exception.parse_error.101] parse error at line 1, column 2: ...`
    if (const std::size_t at = what.find(": "); at != std::string_view::npos) {
      what.remove_prefix(at + 2);
    }
    // It quotes bytes, and may end amid a character.
    return builder_.Fail(
        position_.line,
        fmt::format("not JSON: {}", Readable(what, kMaxReasonBytes)));
  }

  bool is_syntax_error() const { return is_syntax_error_; }

 private:
  bool Add(Value::Kind kind, std::string text, bool flag = false) {
    Value value;
    value.flag = flag;
    value.kind = kind;
    value.line = position_.line;
    value.text = std::move(text);
    return builder_.AddScalar(std::move(value));
  }

  TreeBuilder& builder_;
  const Position& position_;
  bool is_syntax_error_ = false;
};

}  // namespace

ParsedText ParseJson(std::string_view text, bool& is_syntax_error) {
  constexpr std::string_view kBlanks = " \t\r\n";
  ParsedText result;
  TreeBuilder builder;
  Position position;
  JsonHandler handler(builder, position);
  bool ok = true;
  try {
    const char* const end = text.data() + text.size();
    for (;;) {
      while (position.offset < text.size() &&
             kBlanks.find(text[position.offset]) != std::string_view::npos) {
        position.Advance(text[position.offset]);
      }
      if (position.offset == text.size()) break;
      // Not strict: what follows a value is the next one.
      ok = Json::sax_parse(
          CountingIterator(text.data() + position.offset, &position),
          CountingIterator(end, &position), &handler,
          nlohmann::detail::input_format_t::json, /*strict=*/false);
      if (!ok) break;
      ValuePtr document = builder.TakeDocument();
      if (document != nullptr && document->kind != Value::Kind::kNull) {
        result.documents.push_back(std::move(document));
      }
    }
  } catch (const std::exception& error) {
    ok = builder.Fail(
        position.line,
        fmt::format("not JSON: {}", Readable(error.what(), kMaxReasonBytes)));
  }
  is_syntax_error = handler.is_syntax_error();
  if (!ok) {
    result.documents.clear();
    result.error = builder.error().empty() ? "not JSON" : builder.error();
    result.error_line = builder.error_line();
  }
  return result;
}

}  // namespace devmgr::api
