// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/value.h"

namespace devmgr::api {

inline constexpr std::size_t kMaxTextBytes = std::size_t{8} << 20;

/// Bytes of what a library says of a text, as far as it is passed on.
inline constexpr std::size_t kMaxReasonBytes = 500;

/// The documents of a text, or why there are none.
struct ParsedText {
  std::vector<ValuePtr> documents;  ///< Without empty ones.
  std::string error;                ///< Readable. Empty when all is well.
  int error_line = 0;               ///< 0 when it has no line.
};

/// Parses YAML (also several documents) or JSON (also several values after
/// each other). Text that begins with `{` is read as JSON first, as Kubernetes
/// does, and what neither syntax takes has the error of the one that was meant;
/// `json_only` never falls back to YAML. Reentrant, never throws.
ParsedText ParseText(std::string_view text, bool json_only);

/// The two syntaxes; the text must be UTF-8 without control characters.
ParsedText ParseYaml(std::string_view text);
/// `is_syntax_error`: the text is not JSON, rather than JSON beyond a limit.
ParsedText ParseJson(std::string_view text, bool& is_syntax_error);

}  // namespace devmgr::api
