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

/// An expression whose types fit. Indices are those of its nodes.
struct Checked {
  Ast ast;
  std::vector<TypeRef> types;
  /// Of calls: what fits the types of the arguments; several when one is dyn.
  std::vector<std::vector<const Overload*>> overloads;

  const Type& TypeAt(ExprId id) const {
    return *types[static_cast<std::size_t>(id)];
  }
};

/// Finds what each name means and whether the types fit. Selections that are
/// the name of a variable become identifiers, names of types literals. An
/// identifier that begins with a dot is a variable of the environment although
/// a macro's has the same name. Stops at the first problem.
std::variant<Checked, Problem> Check(Ast ast, const Environment& environment);

}  // namespace devmgr::cel
