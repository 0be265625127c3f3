// SPDX-License-Identifier: Apache-2.0
//
// A checked expression in the shape in which it is evaluated. The shape is that
// of cel-go's plan, step by step, since it decides what costs.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cel/checker.h"
#include "cel/regex.h"
#include "cel/source.h"
#include "cel/value.h"

namespace devmgr::cel {

using StepId = std::int32_t;       ///< Index into Plan::steps.
using AttributeId = std::int32_t;  ///< Index into Plan::attributes.
constexpr std::int32_t kNone = -1;

enum class StepKind {
  kConstant,
  kAttribute,  ///< A variable or a value, and the path that leads from it.
  kHas,        ///< The same, for has().
  kAnd,
  kOr,
  kEqual,
  kNotEqual,
  kNotStrictlyFalse,
  kCall,
  kOptionalOr,       ///< optional.or()
  kOptionalOrValue,  ///< optional.orValue()
  kSetMembership,    ///< `in` a constant list.
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
  /// Slots of the variables; kNone for one that there is none of.
  int accumulator = kNone;
  int variable = kNone;
  int variable2 = kNone;
  /// Of a macro that collects: its accumulator may grow in place, since no
  /// expression can name it.
  bool grows = false;
};

struct Step {
  StepKind kind = StepKind::kConstant;
  /// What is counted for it is found by this number. Selections extend the step
  /// of their operand, and give it theirs.
  ExprId id = kNoExpr;
  Value constant;
  std::vector<StepId> args;
  std::vector<bool> optional;  ///< Of lists and maps.
  AttributeId attribute = kNone;
  std::string function;
  std::vector<const Overload*> overloads;   ///< By the checker.
  std::vector<const Overload*> candidates;  ///< What may be run.
  Regex regex;  ///< Of a constant pattern; else null.
  FoldPlan fold;
};

struct Qualifier {
  enum class Kind {
    kConstant,   ///< `.name`, `["name"]`
    kAttribute,  ///< `[x.y]`: resolved, but not counted as a step.
    kStep,       ///< `[f(x)]`
  };
  Kind kind = Kind::kConstant;
  ExprId id = kNoExpr;
  bool optional = false;
  bool test_only = false;  ///< The last one of has().
  Value constant;
  AttributeId attribute = kNone;
  StepId step = kNone;
};

struct Attribute {
  enum class Kind {
    kGlobal,       ///< A variable of the environment: `slot` of the globals.
    kLocal,        ///< A variable of a fold: `slot`.
    kRelative,     ///< The value of `operand`.
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

/// Immutable once made, and shared by whatever evaluates it.
struct Plan {
  std::vector<Step> steps;
  std::vector<Attribute> attributes;
  std::vector<std::string> globals;  ///< Names, by slot.
  /// The fold that a slot's accumulator belongs to; kNone for other variables.
  std::vector<StepId> folds_by_slot;
  StepId root = kNone;
  std::size_t ids = 0;  ///< All numbers of steps and qualifiers are less.

  const Step& At(StepId id) const {
    return steps[static_cast<std::size_t>(id)];
  }
  const Attribute& AttributeAt(AttributeId id) const {
    return attributes[static_cast<std::size_t>(id)];
  }
  /// By which number an attribute's value is counted.
  ExprId IdOf(const Attribute& attribute) const;
};

/// Conversions of constants, such as int("x"), and constant patterns that are
/// wrong are problems already here.
std::variant<Plan, Problem> MakePlan(const Checked& checked);

/// Whether the overload's parameters may be these values: the outermost kind of
/// each is looked at.
bool Fits(const Overload& overload, std::span<const Value> args);

}  // namespace devmgr::cel
