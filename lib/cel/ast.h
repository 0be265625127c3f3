// SPDX-License-Identifier: Apache-2.0
//
// The syntax tree of an expression. All nodes lie in one array and refer to
// each other by their index, so that a tree of any depth is copied and freed
// without recursion. The cost of an evaluation is counted by the same indices.
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
  kSelect,   ///< `target`.`name`; has() is one with `test_only`
  kCall,     ///< `target`.`name`(`args`); operators have names such as `_+_`
  kList,     ///< [`args`]
  kMap,      ///< {`args`}: keys and values alternate
  kFold,     ///< the loop that a macro such as all() becomes: see FoldPart
};

/// The `args` of a fold, which is a loop. The variable `accumulator` begins
/// with the value of kInit. For each element of kRange, as long as kCondition
/// is true, it becomes the value of kStep. The value of the fold is kResult.
enum FoldPart { kRange, kInit, kCondition, kStep, kResult };

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  std::uint32_t offset = 0;  ///< Byte offset into the text.
  bool test_only = false;
  std::string name;
  Value literal;
  ExprId target = kNoExpr;
  std::vector<ExprId> args;
  /// For lists and maps: whether the element, or the entry, was written with
  /// `?`.
  std::vector<bool> optional;
  std::string iter_var;
  std::string iter_var2;  ///< Empty in a fold over one variable.
  std::string accumulator;
  /// The number of levels below this node. A macro counts as one level here.
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

/// The name of the accumulator of a macro. No expression can use it, since `@`
/// is not part of an identifier.
constexpr std::string_view kAccumulatorName = "@result";
/// The name of the iteration variable of cel.bind(), whose fold has no rounds.
constexpr std::string_view kUnusedName = "#unused";

/// The number of nodes that a tree may have. The size of the text is no bound
/// for it: `optMap` copies its target, so that nested ones double the tree.
constexpr std::size_t kMaxNodes = 100'000;
/// The number of levels that a tree may have: as it is written, and with macros
/// expanded.
constexpr int kMaxDepth = 250;
constexpr int kMaxExpandedDepth = 1000;

/// Whether `fold` is what cel.bind() expands to: it binds a name to a value and
/// has no rounds.
inline bool IsBind(const Ast& ast, const Expr& fold) {
  const Expr& range = ast[fold.args[kRange]];
  const Expr& condition = ast[fold.args[kCondition]];
  return range.kind == ExprKind::kList && range.args.empty() &&
         condition.kind == ExprKind::kLiteral && condition.literal.Is<bool>() &&
         !*condition.literal.As<bool>() && fold.accumulator != kAccumulatorName;
}

}  // namespace devmgr::cel
