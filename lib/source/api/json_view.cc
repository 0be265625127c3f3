// SPDX-License-Identifier: Apache-2.0
#include "source/api/json_view.h"

#include <fmt/core.h>

#include "api/quote.h"

namespace devmgr::apiserver {
namespace {

std::size_t SkipSpace(std::string_view text, std::size_t at) {
  while (at < text.size() && IsJsonSpace(text[at])) ++at;
  return at;
}

/// Behind the string that begins at `at`; the size of the text when it is cut.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

std::size_t EndOfValue(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  if (text[at] == '"') return EndOfString(text, at);
  if (text[at] == '{' || text[at] == '[') {
    return at + JsonNesting().Take(text.substr(at));
  }
  while (at < text.size() && !IsJsonSpace(text[at]) && text[at] != ',' &&
         text[at] != '}' && text[at] != ']') {
    ++at;
  }
  return at;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The four digits at `at` as a character.
char UnicodeAt(std::string_view text, std::size_t at) {
  int code = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const int digit = i < text.size() ? HexDigit(text[i]) : -1;
    if (digit < 0) return '?';
    code = code * 16 + digit;
  }
  return code < 0x80 ? static_cast<char>(code) : '?';
}

char Unescaped(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

std::size_t JsonNesting::Take(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (in_string_) {
      at = TakeString(bytes, at);
      continue;
    }
    const char c = bytes[at++];
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      return at;
    }
  }
  return at;
}

std::size_t JsonNesting::TakeString(std::string_view bytes, std::size_t at) {
  bool escaped = escaped_;
  while (at < bytes.size() && in_string_) {
    const char c = bytes[at++];
    in_string_ = escaped || c != '"';
    escaped = !escaped && c == '\\';
  }
  escaped_ = escaped;
  return at;
}

std::string_view FindMember(std::string_view object, std::string_view key) {
  std::size_t at = SkipSpace(object, 0);
  if (at >= object.size() || object[at] != '{') return {};
  ++at;
  for (;;) {
    at = SkipSpace(object, at);
    if (at < object.size() && object[at] == ',') at = SkipSpace(object, at + 1);
    if (at >= object.size() || object[at] != '"') return {};
    const std::size_t key_end = EndOfString(object, at);
    const std::string_view name = object.substr(at, key_end - at);
    at = SkipSpace(object, key_end);
    if (at >= object.size() || object[at] != ':') return {};
    at = SkipSpace(object, at + 1);
    const std::size_t end = EndOfValue(object, at);
    if (end == at) return {};
    if (name.size() == key.size() + 2 && name.substr(1, key.size()) == key) {
      return object.substr(at, end - at);
    }
    at = end;
  }
}

std::string StringOf(std::string_view value) {
  std::string result;
  if (value.empty() || value.front() != '"') return result;
  for (std::size_t i = 1; i < value.size() && value[i] != '"'; ++i) {
    if (value[i] != '\\') {
      result += value[i];
    } else if (++i < value.size()) {
      if (value[i] == 'u') {
        result += UnicodeAt(value, i + 1);
        i += 4;
      } else {
        result += Unescaped(value[i]);
      }
    }
  }
  return result;
}

std::string StringMember(std::string_view object, std::string_view key) {
  return StringOf(FindMember(object, key));
}

std::string DescribeObject(std::string_view object) {
  const std::string kind = StringMember(object, "kind");
  const std::string_view metadata = FindMember(object, "metadata");
  const std::string name = StringMember(metadata, "name");
  const std::string ns = StringMember(metadata, "namespace");
  if (name.empty()) return "an object without a readable name";
  return fmt::format("{} {}", kind.empty() ? "object" : api::Readable(kind, 80),
                     api::Quoted(ns.empty() ? name : ns + "/" + name, 320));
}

}  // namespace devmgr::apiserver
