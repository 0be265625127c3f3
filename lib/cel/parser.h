// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "cel/ast.h"
#include "cel/source.h"

namespace devmgr::cel {

struct ParseOptions {
  bool macros = true;
  /// Whether the name of a field may stand in backquotes: m.`content-type`.
  /// Kubernetes does not permit it.
  bool quoted_fields = false;
};

/// The number of characters that an expression may have.
constexpr std::size_t kMaxTextSize = 10 * 1024;

/// Parses `text` and expands its macros. Stops at the first problem. Recursion
/// is bounded by kMaxDepth, whatever `text` is.
std::variant<Ast, Problem> Parse(std::string_view text,
                                 const ParseOptions& options = {});

}  // namespace devmgr::cel
