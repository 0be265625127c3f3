// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cel/ast_builder.h"

namespace devmgr::cel {

/// Expands the call of a macro. Returns nothing when `name` with these
/// arguments is no macro. `target` is kNoExpr when the call has none. Wrong
/// arguments are reported to `builder`.
std::optional<ExprId> ExpandMacro(AstBuilder& builder, std::uint32_t offset,
                                  std::string_view name, ExprId target,
                                  const std::vector<ExprId>& args);

}  // namespace devmgr::cel
