// SPDX-License-Identifier: Apache-2.0
//
// Expressions as trees in one array: a node is named by its index, which is
// what costs are counted by, too. So a tree of any depth is copied and freed
// without recursion.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cel/value.h"

namespace devmgr::cel {

using ExprId = std::int32_t;
constexpr ExprId kNoExpr = -1;

enum class ExprKind {
  kLiteral,  ///< `literal`
  kIdent,    ///< `name`
  kSelect,   ///< `target`.`name`; `test_only` for has()
  kCall,     ///< `target`.`name`(`args`); operators have names such as `_+_`
  kList,     ///< [`args`]
  kMap,      ///< {`args`}: keys and values alternate
  kFold,     ///< a macro such as all(): see FoldPart
};

/// The `args` of a fold. `accumulator` begins as kInit; for each element of
/// kRange, as long as kCondition holds, it becomes kStep; the value is kResult.
enum FoldPart { kRange, kInit, kCondition, kStep, kResult };

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  std::uint32_t offset = 0;  ///< Into the text, in bytes.
  bool test_only = false;
  std::string name;
  Value literal;
  ExprId target = kNoExpr;
  std::vector<ExprId> args;
  /// Of lists and maps: the element, or entry, was written with `?`.
  std::vector<bool> optional;
  std::string iter_var;
  std::string iter_var2;  ///< Of comprehensions over two variables; else empty.
  std::string accumulator;
  /// Levels below this one, as written.
  int depth = 0;
};

struct Ast {
  std::vector<Expr> nodes;
  ExprId root = kNoExpr;

  const Expr& operator[](ExprId id) const {
    return nodes[static_cast<std::size_t>(id)];
  }
  Expr& operator[](ExprId id) { return nodes[static_cast<std::size_t>(id)]; }
};

/// What a fold of a macro names its accumulator. No expression can write it.
constexpr std::string_view kAccumulatorName = "@result";
/// The iteration variable of a fold that only names a value.
constexpr std::string_view kUnusedName = "#unused";

/// Nodes of the largest tree: `optMap` takes its target twice, so that text is
/// no bound.
constexpr std::size_t kMaxNodes = 100'000;
/// Levels of the deepest tree, as written, and with what macros add.
constexpr int kMaxDepth = 250;
constexpr int kMaxExpandedDepth = 1000;

/// A fold that binds one name to a value, as cel.bind() does.
inline bool IsBind(const Ast& ast, const Expr& fold) {
  const Expr& range = ast[fold.args[kRange]];
  const Expr& condition = ast[fold.args[kCondition]];
  return range.kind == ExprKind::kList && range.args.empty() &&
         condition.kind == ExprKind::kLiteral && condition.literal.Is<bool>() &&
         !*condition.literal.As<bool>() && fold.accumulator != kAccumulatorName;
}

}  // namespace devmgr::cel
