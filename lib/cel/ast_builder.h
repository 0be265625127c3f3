// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/source.h"

namespace devmgr::cel {

/// Makes the nodes of a tree and keeps its limits. After the first problem it
/// goes on making nodes, so that callers have to check for a problem in few
/// places only.
class AstBuilder {
 public:
  ExprId Literal(std::uint32_t offset, Value value);
  ExprId Ident(std::uint32_t offset, std::string name);
  ExprId Select(std::uint32_t offset, ExprId target, std::string field);
  ExprId Call(std::uint32_t offset, std::string_view function,
              std::vector<ExprId> args, ExprId target = kNoExpr);
  ExprId List(std::uint32_t offset, std::vector<ExprId> elements,
              std::vector<bool> optional = {});
  ExprId Map(std::uint32_t offset, std::vector<ExprId> keys_and_values,
             std::vector<bool> optional = {});
  /// Makes a fold over one or two `variables`.
  ExprId Fold(std::uint32_t offset, const std::vector<std::string>& variables,
              std::string_view accumulator, ExprId range, ExprId init,
              ExprId condition, ExprId step, ExprId result);
  /// Copies the subtree of `id`.
  ExprId Copy(ExprId id);

  /// Sets the depth of `id`, the expansion of a macro with these arguments, to
  /// one level above its arguments.
  void CountAsOneLevel(ExprId id, ExprId target,
                       const std::vector<ExprId>& args);

  void Report(std::uint32_t offset, std::string message);
  const std::optional<Problem>& problem() const { return problem_; }
  Ast& ast() { return ast_; }
  const Expr& operator[](ExprId id) const { return ast_[id]; }

 private:
  ExprId Add(Expr expr);
  int DepthOf(const std::vector<ExprId>& children) const;

  Ast ast_;
  std::vector<int> real_depths_;  ///< By node, with macros expanded.
  std::optional<Problem> problem_;
};

}  // namespace devmgr::cel
