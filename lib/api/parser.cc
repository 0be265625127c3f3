// SPDX-License-Identifier: Apache-2.0
#include "api/parser.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/quote.h"

namespace devmgr::api {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

int LineOf(std::string_view text, std::size_t at) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

ParsedText Failure(int line, std::string error) {
  ParsedText result;
  result.error = std::move(error);
  result.error_line = line;
  return result;
}

/// Index of the first control character that no manifest may hold.
std::size_t FindControlCharacter(std::string_view text) {
  const auto found = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r');
  });
  return found == text.end() ? std::string_view::npos
                             : static_cast<std::size_t>(found - text.begin());
}

/// Whether text that begins with `{`, and that neither syntax takes, is meant
/// as JSON rather than as YAML: its first name is quoted, or is missing, and
/// there are no separators of YAML documents.
bool IsMeantAsJson(std::string_view text, std::size_t brace) {
  const std::size_t next = text.find_first_not_of(" \t\r\n", brace + 1);
  const bool is_json =
      next == std::string_view::npos || text[next] == '"' || text[next] == '}';
  return is_json && text.find("\n---") == std::string_view::npos;
}

}  // namespace

ParsedText ParseText(std::string_view text, bool json_only) {
  if (text.size() > kMaxTextBytes) {
    return Failure(0, fmt::format("too large: {} bytes, at most {} are read",
                                  text.size(), kMaxTextBytes));
  }
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const std::size_t at = FindInvalidUtf8(text);
      at != std::string_view::npos) {
    return Failure(LineOf(text, at), "not UTF-8 text");
  }
  if (const std::size_t at = FindControlCharacter(text);
      at != std::string_view::npos) {
    return Failure(LineOf(text, at),
                   fmt::format("control character {} in the text",
                               Quoted(text.substr(at, 1))));
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  if (json_only || text[first] == '{') {
    bool is_syntax_error = false;
    ParsedText json = ParseJson(text, is_syntax_error);
    if (json_only || !is_syntax_error) return json;
    ParsedText yaml = ParseYaml(text);
    return yaml.error.empty() || !IsMeantAsJson(text, first) ? yaml : json;
  }
  return ParseYaml(text);
}

}  // namespace devmgr::api
