// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "cel/ast.h"
#include "cel/source.h"

namespace devmgr::cel {

struct ParseOptions {
  bool macros = true;
  /// Fields in backquotes: m.`content-type`. Kubernetes has them off.
  bool quoted_fields = false;
};

/// Characters of the longest expression.
constexpr std::size_t kMaxTextSize = 10 * 1024;

/// The tree of `text`, macros expanded. Stops at the first problem. Recursion
/// is bounded by kMaxDepth, whatever the text is.
std::variant<Ast, Problem> Parse(std::string_view text,
                                 const ParseOptions& options = {});

}  // namespace devmgr::cel
