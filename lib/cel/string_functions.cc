// SPDX-License-Identifier: Apache-2.0
//
// The functions of strings. Indices and sizes are counted in characters.
#include <algorithm>
#include <array>
#include <cstdint>

#include "cel/format.h"
#include "cel/function.h"
#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

using std::int64_t;

Value OutOfRange(int64_t index) {
  return Value::Failed("index out of range: " + std::to_string(index));
}

int64_t Count(std::string_view text) {
  return static_cast<int64_t>(CountCharacters(text));
}
std::size_t Offset(std::string_view text, int64_t index) {
  return OffsetOf(text, static_cast<std::size_t>(index));
}

Value CharAt(const Args& args) {
  const std::string& text = args.Text(0);
  const int64_t index = args.As<int64_t>(1);
  if (index < 0 || index > Count(text)) return OutOfRange(index);
  if (!args.work.Spend(text.size() / 64)) return WorkIsOver();
  const std::size_t offset = Offset(text, index);
  if (offset == text.size()) return Value::Text("");
  return Value::Text(text.substr(
      offset, CharacterSize(std::string_view(text).substr(offset))));
}

Value IndexOfFrom(const std::string& text, const std::string& wanted,
                  int64_t from) {
  if (from < 0) return OutOfRange(from);
  const int64_t size = Count(text);
  if (wanted.empty()) return Value::Int(std::min(from, size));
  if (from >= size) return Value::Int(-1);
  const std::size_t found = text.find(wanted, Offset(text, from));
  return Value::Int(found == std::string::npos
                        ? -1
                        : Count(std::string_view(text).substr(0, found)));
}
Value TextIndexOf(const Args& args) {
  return IndexOfFrom(args.Text(0), args.Text(1),
                     args.size() > 2 ? args.As<int64_t>(2) : 0);
}

Value LastTextIndexOf(const Args& args) {
  const std::string& text = args.Text(0);
  const std::string& wanted = args.Text(1);
  const int64_t size = Count(text);
  const bool has_offset = args.size() > 2;
  const int64_t from = has_offset ? args.As<int64_t>(2) : size;
  if (from < 0) return OutOfRange(from);
  if (wanted.empty()) return Value::Int(std::min(from, size));
  if (has_offset && from >= size) return Value::Int(-1);
  const std::size_t found = text.rfind(wanted, Offset(text, from));
  return Value::Int(found == std::string::npos
                        ? -1
                        : Count(std::string_view(text).substr(0, found)));
}

template <char kFirst, char kLast, int kShift>
Value ChangeCase(const Args& args) {
  std::string text = args.Text(0);
  for (char& c : text) {
    if (c >= kFirst && c <= kLast) c = static_cast<char>(c + kShift);
  }
  return MakeText(args, std::move(text));
}

Value Replace(const Args& args) {
  const std::string& text = args.Text(0);
  const std::string& from = args.Text(1);
  const std::string& to = args.Text(2);
  int64_t left = args.size() > 3 ? args.As<int64_t>(3) : -1;
  std::string out;
  std::size_t at = 0;
  // An empty `from` is found before each character and at the end of the text.
  while (left != 0) {
    const std::size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    if (!args.work.SpendOnText(to.size())) return WorkIsOver();
    out.append(text, at, found - at);
    out += to;
    --left;
    at = found + from.size();
    if (!from.empty()) continue;
    if (at == text.size()) return Value::Text(std::move(out));
    const std::size_t size = CharacterSize(std::string_view(text).substr(at));
    out.append(text, at, size);
    at += size;
  }
  out.append(text, at);
  return MakeText(args, std::move(out));
}

Value Split(const Args& args) {
  const std::string& text = args.Text(0);
  const std::string& separator = args.Text(1);
  int64_t left = args.size() > 2 ? args.As<int64_t>(2) : -1;
  std::vector<Value> parts;
  if (left == 0 || (separator.empty() && text.empty())) {
    return MakeList(args, std::move(parts));
  }
  std::size_t at = 0;
  while (left != 1) {
    const std::size_t end =
        separator.empty()
            ? at + CharacterSize(std::string_view(text).substr(at))
            : text.find(separator, at);
    if (end >= text.size()) break;
    if (!args.work.SpendOnValues(1)) return WorkIsOver();
    parts.push_back(Value::Text(text.substr(at, end - at)));
    at = end + separator.size();
    --left;
    if (separator.empty()) continue;
  }
  parts.push_back(Value::Text(text.substr(at)));
  return MakeList(args, std::move(parts));
}

Value Join(const Args& args) {
  const std::string separator = args.size() > 1 ? args.Text(1) : "";
  std::string out;
  for (const Value& element : args.As<List>(0)->elements) {
    if (!element.Is<String>()) return NoSuchOverload("join");
    if (!args.work.SpendOnText(separator.size() + element.text().size())) {
      return WorkIsOver();
    }
    if (&element != &args.As<List>(0)->elements.front()) out += separator;
    out += element.text();
  }
  return Value::Text(std::move(out));
}

Value Substring(const Args& args) {
  const std::string& text = args.Text(0);
  const int64_t size = Count(text);
  const int64_t begin = args.As<int64_t>(1);
  const int64_t end = args.size() > 2 ? args.As<int64_t>(2) : size;
  if (args.size() > 2 && begin > end) {
    return Value::Failed(
        "invalid substring range. start: " + std::to_string(begin) +
        ", end: " + std::to_string(end));
  }
  if (begin < 0 || begin > size) return OutOfRange(begin);
  if (end < 0 || end > size) return OutOfRange(end);
  const std::size_t offset = Offset(text, begin);
  return MakeText(args, text.substr(offset, Offset(text, end) - offset));
}

/// The white space of Unicode, as Go defines it.
bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Value Trim(const Args& args) {
  const std::string_view text = args.Text(0);
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t next = at + CharacterSize(rest);
    if (!IsSpace(FirstCharacter(rest))) {
      begin = std::min(begin, at);
      end = next;
    }
    at = next;
  }
  return MakeText(
      args, begin >= end ? "" : std::string(text.substr(begin, end - begin)));
}

Value Quote(const Args& args) {
  constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"";
  constexpr std::string_view kNames = "abfnrtv\\\"";
  std::string out = "\"";
  for (const char c : args.Text(0)) {
    const std::size_t special = kSpecial.find(c);
    if (special != std::string_view::npos) out += '\\';
    out += special == std::string_view::npos ? c : kNames[special];
  }
  return MakeText(args, out + '"');
}

Value Format(const Args& args) {
  return FormatText(args.Text(0), args.As<List>(1)->elements, args.work);
}

constexpr auto kStringRows = std::to_array<FunctionRow>({
    {"contains", "contains_string", "string.(string) -> bool",
     [](const Args& args) {
       return Value::Bool(args.Text(0).find(args.Text(1)) != std::string::npos);
     }},
    {"endsWith", "ends_with_string", "string.(string) -> bool",
     [](const Args& args) {
       return Value::Bool(args.Text(0).ends_with(args.Text(1)));
     }},
    {"startsWith", "starts_with_string", "string.(string) -> bool",
     [](const Args& args) {
       return Value::Bool(args.Text(0).starts_with(args.Text(1)));
     }},
    {"charAt", "string_char_at_int", "string.(int) -> string", CharAt},
    {"indexOf", "string_index_of_string", "string.(string) -> int",
     TextIndexOf},
    {"indexOf", "string_index_of_string_int", "string.(string, int) -> int",
     TextIndexOf},
    {"lastIndexOf", "string_last_index_of_string", "string.(string) -> int",
     LastTextIndexOf},
    {"lastIndexOf", "string_last_index_of_string_int",
     "string.(string, int) -> int", LastTextIndexOf},
    {"lowerAscii", "string_lower_ascii", "string.() -> string",
     ChangeCase<'A', 'Z', 'a' - 'A'>},
    {"upperAscii", "string_upper_ascii", "string.() -> string",
     ChangeCase<'a', 'z', 'A' - 'a'>},
    {"replace", "string_replace_string_string",
     "string.(string, string) -> string", Replace},
    {"replace", "string_replace_string_string_int",
     "string.(string, string, int) -> string", Replace},
    {"split", "string_split_string", "string.(string) -> list(string)", Split},
    {"split", "string_split_string_int", "string.(string, int) -> list(string)",
     Split},
    {"substring", "string_substring_int", "string.(int) -> string", Substring},
    {"substring", "string_substring_int_int", "string.(int, int) -> string",
     Substring},
    {"trim", "string_trim", "string.() -> string", Trim},
    {"join", "list_join", "list(string).() -> string", Join},
    {"join", "list_join_string", "list(string).(string) -> string", Join},
    {"strings.quote", "strings_quote", "(string) -> string", Quote},
    {"format", "string_format", "string.(list(dyn)) -> string", Format},
});

}  // namespace

std::span<const FunctionRow> StringFunctions() { return kStringRows; }

}  // namespace devmgr::cel
