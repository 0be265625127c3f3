// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/source.h"

namespace devmgr::cel {

/// An expression whose types fit. Its vectors are indexed by node.
struct Checked {
  Ast ast;
  std::vector<TypeRef> types;
  /// For calls: the overloads that fit the types of the arguments. There may be
  /// several when an argument is dyn.
  std::vector<std::vector<const Overload*>> overloads;

  const Type& TypeAt(ExprId id) const {
    return *types[static_cast<std::size_t>(id)];
  }
};

/// Resolves the names of an expression and checks its types. Stops at the first
/// problem. Three kinds of nodes are replaced: a chain of selections that
/// spells the name of a variable becomes one identifier; the name of a type
/// becomes a literal; and an identifier for a variable of the environment gets
/// a leading dot when the variable of a macro has the same name.
std::variant<Checked, Problem> Check(Ast ast, const Environment& environment);

}  // namespace devmgr::cel
