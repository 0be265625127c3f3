// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/size_range.h"
#include "cel/type.h"

namespace devmgr::cel {

/// An operand of a call, as far as it is known before the call is run.
struct Operand {
  std::vector<std::string> path;  ///< As DeviceSize() has it; may be empty.
  TypeRef type;
  const Expr* expr = nullptr;
  std::optional<SizeRange> size;
};

struct CallEstimate {
  CostRange cost;
  std::optional<SizeRange> result_size;
};

/// What a call of an overload costs beyond its operands. `target` is null for
/// a function that is no member. Nothing for what the caller has to see to:
/// `&&`, `||`, `?:` and `+`, which know more of their operands.
std::optional<CallEstimate> EstimateCall(std::string_view function,
                                         std::string_view overload,
                                         const Operand* target,
                                         const std::vector<Operand>& args);

}  // namespace devmgr::cel
