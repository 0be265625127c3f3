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

/// The operand of a call, as far as it is known without evaluating it.
struct Operand {
  /// See DeviceSize(). Empty when it is unknown.
  std::vector<std::string> path;
  TypeRef type;
  const Expr* expr = nullptr;
  std::optional<SizeRange> size;
};

struct CallEstimate {
  CostRange cost;
  std::optional<SizeRange> result_size;
};

/// The cost of a call beyond that of its operands. `target` is null when the
/// function is no member. Nothing for `&&`, `||`, `?:` and `+`, whose costs and
/// sizes depend on more than their operands; the caller estimates these.
std::optional<CallEstimate> EstimateCall(std::string_view function,
                                         std::string_view overload,
                                         const Operand* target,
                                         const std::vector<Operand>& args);

}  // namespace devmgr::cel
