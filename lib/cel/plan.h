// SPDX-License-Identifier: Apache-2.0
//
// The steps in which a checked expression is evaluated. They are the steps of
// cel-go's plan, one by one, since the cost is counted by step.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cel/checker.h"
#include "cel/cost.h"
#include "cel/regex.h"
#include "cel/source.h"
#include "cel/value.h"

namespace devmgr::cel {

using StepId = std::int32_t;       ///< Index into Plan::steps.
using AttributeId = std::int32_t;  ///< Index into Plan::attributes.
constexpr std::int32_t kNone = -1;

enum class StepKind {
  kConstant,
  kAttribute,  ///< A variable or value, and the path of fields from it.
  kHas,        ///< kAttribute for has().
  kAnd,
  kOr,
  kEqual,
  kNotEqual,
  kNotStrictlyFalse,
  kCall,
  kOptionalOr,       ///< `or` of an optional
  kOptionalOrValue,  ///< `orValue` of an optional
  kSetMembership,    ///< `in` with a constant list
  kList,
  kMap,
  kFold,
};

struct FoldPlan {
  StepId range = kNone;
  StepId init = kNone;
  StepId condition = kNone;
  StepId step = kNone;
  StepId result = kNone;
  /// The slots of the variables. `variable2` is kNone in a fold over one
  /// variable.
  int accumulator = kNone;
  int variable = kNone;
  int variable2 = kNone;
  /// Whether the accumulator may be appended to in place. That is safe for the
  /// accumulator of a macro, since no expression can refer to it.
  bool grows = false;
};

struct Step {
  StepKind kind = StepKind::kConstant;
  /// The number under which the cost tracker finds this step. A selection has
  /// no step of its own: it extends the path of its operand's step, which then
  /// gets the number of the selection.
  ExprId id = kNoExpr;
  Value constant;
  std::vector<StepId> args;
  std::vector<bool> optional;  ///< For lists and maps, as in Expr.
  AttributeId attribute = kNone;
  std::string function;
  /// The overloads that the checker found to fit.
  std::vector<const Overload*> overloads;
  /// The overloads among which a call chooses.
  std::vector<const Overload*> candidates;
  Regex regex;  ///< The pattern if it is constant, else null.
  CostRule cost_rule = CostRule::kOne;
  /// Whether no further argument is evaluated after one that is an error.
  /// Otherwise all of them are, which adds to the cost. It depends on how
  /// cel-go binds the function: to one implementation, or to several among
  /// which a call chooses.
  bool stops_early = false;
  FoldPlan fold;
};

struct Qualifier {
  enum class Kind {
    kConstant,   ///< `.name`, `["name"]`
    kAttribute,  ///< `[x.y]`: the path is followed, but counts as no step.
    kStep,       ///< `[f(x)]`
  };
  Kind kind = Kind::kConstant;
  ExprId id = kNoExpr;
  bool optional = false;
  bool test_only = false;  ///< The field that has() asks for.
  Value constant;
  AttributeId attribute = kNone;
  StepId step = kNone;
};

struct Attribute {
  enum class Kind {
    kGlobal,       ///< A variable of the environment: `slot` is its global.
    kLocal,        ///< A variable of a fold, in `slot`.
    kRelative,     ///< The value of the step `operand`.
    kConditional,  ///< `operand` ? `if_true` : `if_false`.
  };
  Kind kind = Kind::kGlobal;
  ExprId id = kNoExpr;
  int slot = kNone;
  StepId operand = kNone;
  AttributeId if_true = kNone;
  AttributeId if_false = kNone;
  std::vector<Qualifier> qualifiers;
};

/// A plan. It is immutable once it is made, and any number of evaluations may
/// share it.
struct Plan {
  std::vector<Step> steps;
  std::vector<Attribute> attributes;
  std::vector<std::string> globals;  ///< The names of the globals, by slot.
  /// By slot: the fold whose accumulator it is; kNone for other variables.
  std::vector<StepId> folds_by_slot;
  StepId root = kNone;
  std::size_t ids = 0;  ///< More than any number of a step or a qualifier.

  const Step& At(StepId id) const {
    return steps[static_cast<std::size_t>(id)];
  }
  const Attribute& AttributeAt(AttributeId id) const {
    return attributes[static_cast<std::size_t>(id)];
  }
  /// The number under which the value of `attribute` is counted.
  ExprId IdOf(const Attribute& attribute) const;
};

/// Makes the plan of an expression. Conversions of constants, such as int("x"),
/// and constant patterns are evaluated here, so that a wrong one is a problem
/// of the expression.
std::variant<Plan, Problem> MakePlan(const Checked& checked);

/// Whether the arguments fit the overload's parameters. Only the kind of each
/// argument is looked at, not the types of its elements.
bool Fits(const Overload& overload, std::span<const Value> args);

}  // namespace devmgr::cel
