// SPDX-License-Identifier: Apache-2.0
#include "cel/ast_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace devmgr::cel {
namespace {

std::vector<ExprId> ChildrenOf(const Expr& expr) {
  std::vector<ExprId> children = expr.args;
  if (expr.target != kNoExpr) children.push_back(expr.target);
  return children;
}

}  // namespace

void AstBuilder::Report(std::uint32_t offset, std::string message) {
  if (!problem_) problem_ = Problem{offset, std::move(message)};
}

ExprId AstBuilder::Add(Expr expr) {
  const std::vector<ExprId> children = ChildrenOf(expr);
  int real_depth = 0;
  for (const ExprId child : children) {
    expr.depth = std::max(expr.depth, ast_[child].depth + 1);
    real_depth =
        std::max(real_depth, real_depths_[static_cast<std::size_t>(child)] + 1);
  }
  if (expr.depth > kMaxDepth || real_depth > kMaxExpandedDepth) {
    Report(expr.offset,
           fmt::format("the expression is nested too deeply: {} levels are "
                       "permitted",
                       kMaxDepth));
  }
  if (ast_.nodes.size() >= kMaxNodes) {
    Report(expr.offset,
           fmt::format("the expression is too large: with what its macros "
                       "stand for it has more than {} parts",
                       kMaxNodes));
    return 0;
  }
  ast_.nodes.push_back(std::move(expr));
  real_depths_.push_back(real_depth);
  return static_cast<ExprId>(ast_.nodes.size() - 1);
}

void AstBuilder::CountAsOneLevel(ExprId id, ExprId target,
                                 const std::vector<ExprId>& args) {
  int depth = target == kNoExpr ? 0 : ast_[target].depth + 1;
  for (const ExprId arg : args) depth = std::max(depth, ast_[arg].depth + 1);
  ast_[id].depth = depth;
}

ExprId AstBuilder::Literal(std::uint32_t offset, Value value) {
  Expr expr;
  expr.kind = ExprKind::kLiteral;
  expr.offset = offset;
  expr.literal = std::move(value);
  return Add(std::move(expr));
}

ExprId AstBuilder::Ident(std::uint32_t offset, std::string name) {
  Expr expr;
  expr.kind = ExprKind::kIdent;
  expr.offset = offset;
  expr.name = std::move(name);
  return Add(std::move(expr));
}

ExprId AstBuilder::Select(std::uint32_t offset, ExprId target,
                          std::string field) {
  Expr expr;
  expr.kind = ExprKind::kSelect;
  expr.offset = offset;
  expr.target = target;
  expr.name = std::move(field);
  return Add(std::move(expr));
}

ExprId AstBuilder::Call(std::uint32_t offset, std::string_view function,
                        std::vector<ExprId> args, ExprId target) {
  Expr expr;
  expr.kind = ExprKind::kCall;
  expr.offset = offset;
  expr.target = target;
  expr.name = std::string(function);
  expr.args = std::move(args);
  return Add(std::move(expr));
}

ExprId AstBuilder::List(std::uint32_t offset, std::vector<ExprId> elements,
                        std::vector<bool> optional) {
  Expr expr;
  expr.kind = ExprKind::kList;
  expr.offset = offset;
  expr.args = std::move(elements);
  expr.optional = std::move(optional);
  return Add(std::move(expr));
}

ExprId AstBuilder::Map(std::uint32_t offset,
                       std::vector<ExprId> keys_and_values,
                       std::vector<bool> optional) {
  Expr expr;
  expr.kind = ExprKind::kMap;
  expr.offset = offset;
  expr.args = std::move(keys_and_values);
  expr.optional = std::move(optional);
  return Add(std::move(expr));
}

ExprId AstBuilder::Fold(std::uint32_t offset,
                        const std::vector<std::string>& variables,
                        std::string_view accumulator, ExprId range, ExprId init,
                        ExprId condition, ExprId step, ExprId result) {
  Expr expr;
  expr.kind = ExprKind::kFold;
  expr.offset = offset;
  expr.iter_var = variables.at(0);
  if (variables.size() > 1) expr.iter_var2 = variables[1];
  expr.accumulator = std::string(accumulator);
  expr.args = {range, init, condition, step, result};
  return Add(std::move(expr));
}

ExprId AstBuilder::Copy(ExprId id) {
  // A child has a smaller index than its parent. In the order of indices each
  // child is therefore copied before its parent.
  std::vector<ExprId> wanted = {id};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<ExprId> children = ChildrenOf(ast_[wanted[i]]);
    wanted.insert(wanted.end(), children.begin(), children.end());
    if (ast_.nodes.size() + wanted.size() > kMaxNodes) break;
  }
  std::sort(wanted.begin(), wanted.end());
  // Pairs of original and copy, sorted.
  std::vector<std::pair<ExprId, ExprId>> copies;
  const auto copy_of = [&](ExprId from) {
    const auto found = std::lower_bound(copies.begin(), copies.end(),
                                        std::pair(from, ExprId{0}));
    return found == copies.end() ? 0 : found->second;
  };
  for (const ExprId from : wanted) {
    Expr expr = ast_[from];
    if (expr.target != kNoExpr) expr.target = copy_of(expr.target);
    for (ExprId& arg : expr.args) arg = copy_of(arg);
    copies.emplace_back(from, Add(std::move(expr)));
    if (problem_) return id;
  }
  return copies.back().second;
}

}  // namespace devmgr::cel
