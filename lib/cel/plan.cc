// SPDX-License-Identifier: Apache-2.0
#include "cel/plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace devmgr::cel {
namespace {

/// Conversions are evaluated while the plan is made if their argument is
/// constant.
bool IsConversion(std::string_view function) {
  constexpr std::array<std::string_view, 10> kNames = {
      "bool", "bytes",  "double",    "duration", "dyn",
      "int",  "string", "timestamp", "type",     "uint"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end();
}

struct SlotName {
  std::string name;
  int slot = kNone;
};

class Planner {
 public:
  explicit Planner(const Checked& checked) : checked_(checked) {}

  std::variant<Plan, Problem> Run() {
    plan_.ids = checked_.ast.nodes.size();
    plan_.root = PlanExpr(checked_.ast.root);
    if (problem_) return *std::move(problem_);
    return std::move(plan_);
  }

 private:
  const Expr& ExprAt(ExprId id) const { return checked_.ast[id]; }
  Step& StepAt(StepId id) { return plan_.steps[static_cast<std::size_t>(id)]; }
  Attribute& AttributeAt(AttributeId id) {
    return plan_.attributes[static_cast<std::size_t>(id)];
  }
  bool IsConstant(StepId id) { return StepAt(id).kind == StepKind::kConstant; }
  bool IsAttribute(StepId id) {
    return StepAt(id).kind == StepKind::kAttribute ||
           StepAt(id).kind == StepKind::kHas;
  }

  StepId Add(Step step) {
    plan_.steps.push_back(std::move(step));
    return static_cast<StepId>(plan_.steps.size() - 1);
  }
  AttributeId Add(Attribute attribute) {
    plan_.attributes.push_back(std::move(attribute));
    return static_cast<AttributeId>(plan_.attributes.size() - 1);
  }
  StepId Constant(ExprId id, Value value) {
    Step step;
    step.id = id;
    step.constant = std::move(value);
    return Add(std::move(step));
  }
  StepId OfAttribute(AttributeId attribute) {
    Step step;
    step.kind = StepKind::kAttribute;
    step.attribute = attribute;
    step.id = plan_.IdOf(AttributeAt(attribute));
    return Add(std::move(step));
  }

  StepId PlanExpr(ExprId id) {
    const Expr& expr = ExprAt(id);
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return Constant(id, expr.literal);
      case ExprKind::kIdent:
        return OfAttribute(Variable(id, expr.name));
      case ExprKind::kSelect:
        return PlanSelect(id, expr);
      case ExprKind::kCall:
        return PlanCall(id, expr);
      case ExprKind::kList:
      case ExprKind::kMap:
        return PlanAggregate(id, expr);
      case ExprKind::kFold:
        return PlanFold(id, expr);
    }
    return Constant(id, Value());
  }

  AttributeId Variable(ExprId id, std::string_view name) {
    Attribute attribute;
    attribute.id = id;
    const bool is_global = name.front() == '.';
    if (is_global) name.remove_prefix(1);
    const auto local = std::find_if(locals_.rbegin(), locals_.rend(),
                                    [&](const SlotName& known) {
                                      return !is_global && known.name == name;
                                    });
    if (local != locals_.rend()) {
      attribute.kind = Attribute::Kind::kLocal;
      attribute.slot = local->slot;
      return Add(std::move(attribute));
    }
    const auto global =
        std::find(plan_.globals.begin(), plan_.globals.end(), name);
    attribute.slot = static_cast<int>(global - plan_.globals.begin());
    if (global == plan_.globals.end()) plan_.globals.emplace_back(name);
    return Add(std::move(attribute));
  }

  AttributeId Relative(ExprId id, StepId operand) {
    Attribute attribute;
    attribute.kind = Attribute::Kind::kRelative;
    attribute.id = id;
    attribute.operand = operand;
    return Add(std::move(attribute));
  }

  /// The attribute of a step. One is made for it if it has none.
  AttributeId AttributeOf(StepId step) {
    return IsAttribute(step) ? StepAt(step).attribute
                             : Relative(StepAt(step).id, step);
  }

  /// Appends `qualifier` to the path of an attribute. For `c ? a : b` it is
  /// appended to both paths.
  void Qualify(AttributeId id, const Qualifier& qualifier) {
    if (AttributeAt(id).kind == Attribute::Kind::kConditional) {
      const AttributeId if_false = AttributeAt(id).if_false;
      Qualify(AttributeAt(id).if_true, qualifier);
      Qualify(if_false, qualifier);
      return;
    }
    AttributeAt(id).qualifiers.push_back(qualifier);
  }

  /// A step for the path of `operand` with `qualifier` appended. If the operand
  /// is an attribute itself, its step is extended.
  StepId Extend(StepId operand, const Qualifier& qualifier) {
    const StepId step =
        IsAttribute(operand) ? operand : OfAttribute(AttributeOf(operand));
    Qualify(StepAt(step).attribute, qualifier);
    StepAt(step).id = plan_.IdOf(AttributeAt(StepAt(step).attribute));
    return step;
  }

  StepId PlanSelect(ExprId id, const Expr& expr) {
    Qualifier qualifier;
    qualifier.id = id;
    qualifier.constant = Value::Text(expr.name);
    qualifier.test_only = expr.test_only;
    const StepId step = Extend(PlanExpr(expr.target), qualifier);
    if (expr.test_only) {
      StepAt(step).kind = StepKind::kHas;
      StepAt(step).id = id;
    }
    return step;
  }

  StepId PlanIndex(ExprId id, const std::vector<StepId>& args, bool optional) {
    Qualifier qualifier;
    qualifier.id = id;
    qualifier.optional = optional;
    if (IsConstant(args[1])) {
      qualifier.constant = StepAt(args[1]).constant;
    } else if (IsAttribute(args[1])) {
      qualifier.kind = Qualifier::Kind::kAttribute;
      qualifier.attribute = StepAt(args[1]).attribute;
    } else {
      qualifier.kind = Qualifier::Kind::kStep;
      qualifier.step = args[1];
    }
    return Extend(args[0], qualifier);
  }

  StepId PlanConditional(ExprId id, const std::vector<StepId>& args) {
    Attribute attribute;
    attribute.kind = Attribute::Kind::kConditional;
    attribute.id = id;
    attribute.operand = args[0];
    attribute.if_true = AttributeOf(args[1]);
    attribute.if_false = AttributeOf(args[2]);
    return OfAttribute(Add(std::move(attribute)));
  }

  StepId PlanCall(ExprId id, const Expr& expr) {
    std::vector<StepId> args;
    if (expr.target != kNoExpr) args.push_back(PlanExpr(expr.target));
    for (const ExprId arg : expr.args) args.push_back(PlanExpr(arg));
    if (problem_) return Constant(id, Value());
    if (expr.name == "_?_:_") return PlanConditional(id, args);
    if (expr.name == "_[_]") return PlanIndex(id, args, false);
    if (expr.name == "_[?_]" || expr.name == "_?._") {
      return PlanIndex(id, args, true);
    }
    Step step;
    step.kind = KindOfCall(expr.name);
    step.id = id;
    step.args = std::move(args);
    step.function = expr.name;
    step.overloads = checked_.overloads[static_cast<std::size_t>(id)];
    step.candidates = Candidates(step.function, step.overloads);
    return Optimize(std::move(step));
  }

  static std::vector<const Overload*> Candidates(
      std::string_view function,
      const std::vector<const Overload*>& overloads) {
    const auto* declared = KubernetesLibrary().Find(function);
    if (declared == nullptr || !ChoosesByValue(function)) return overloads;
    std::vector<const Overload*> candidates;
    for (const Overload& overload : declared->overloads) {
      candidates.push_back(&overload);
    }
    return candidates;
  }

  static StepKind KindOfCall(std::string_view function) {
    constexpr std::array<std::pair<std::string_view, StepKind>, 7> kKinds = {{
        {"_&&_", StepKind::kAnd},
        {"_||_", StepKind::kOr},
        {"_==_", StepKind::kEqual},
        {"_!=_", StepKind::kNotEqual},
        {"@not_strictly_false", StepKind::kNotStrictlyFalse},
        {"or", StepKind::kOptionalOr},
        {"orValue", StepKind::kOptionalOrValue},
    }};
    for (const auto& [name, kind] : kKinds) {
      if (name == function) return kind;
    }
    return StepKind::kCall;
  }

  /// Evaluates in advance what does not depend on the variables.
  StepId Optimize(Step step) {
    if (step.kind == StepKind::kCall && step.args.size() == 1 &&
        IsConversion(step.function) && IsConstant(step.args[0])) {
      return FoldConversion(step);
    }
    const bool second_is_constant =
        step.args.size() == 2 && IsConstant(step.args[1]);
    if (step.function == "@in" && second_is_constant) {
      OptimizeMembership(step);
    }
    const bool pattern_is_constant = step.args.size() > 1 &&
                                     IsConstant(step.args[1]) &&
                                     StepAt(step.args[1]).constant.Is<String>();
    if (TakesPattern(step.function) && pattern_is_constant) {
      CompilePattern(step);
    }
    const bool has_one_overload = step.overloads.size() == 1;
    const std::string_view overload =
        has_one_overload ? step.overloads[0]->id : std::string_view();
    step.cost_rule = CostRuleOf(step.function, overload);
    step.stops_early = step.args.size() > 2 || step.regex ||
                       step.function == "format" ||
                       (!has_one_overload && !ChoosesByValue(step.function));
    return Add(std::move(step));
  }

  StepId FoldConversion(const Step& step) {
    const std::array<Value, 1> args = {StepAt(step.args[0]).constant};
    Work work;
    for (const Overload* overload : step.overloads) {
      if (!Fits(*overload, args)) continue;
      Value value = overload->run(Args{args, work});
      if (value.IsError()) Report(step.id, value.message());
      return Constant(step.id, std::move(value));
    }
    Report(step.id, "no such overload: " + step.function);
    return Constant(step.id, Value());
  }

  /// Membership in a constant list of simple values is free. In an empty list
  /// it is always false.
  void OptimizeMembership(Step& step) {
    const auto* list = StepAt(step.args[1]).constant.As<List>();
    if (list == nullptr) return;
    const std::vector<Value>& elements = (*list)->elements;
    if (elements.empty()) {
      step.kind = StepKind::kConstant;
      step.constant = Value::Bool(false);
      return;
    }
    const bool simple =
        std::all_of(elements.begin(), elements.end(), [](const Value& value) {
          return IsLegalKey(value) || value.Is<double>() || value.Is<Null>();
        });
    if (simple) step.kind = StepKind::kSetMembership;
  }

  void CompilePattern(Step& step) {
    auto regex = CompileRegex(StepAt(step.args[1]).constant.text());
    if (auto* message = std::get_if<std::string>(&regex)) {
      Report(step.id, std::move(*message));
      return;
    }
    step.regex = std::get<Regex>(std::move(regex));
  }

  void Report(ExprId where, std::string message) {
    if (!problem_) {
      problem_ = Problem{ExprAt(where).offset, std::move(message)};
    }
  }

  StepId PlanAggregate(ExprId id, const Expr& expr) {
    Step step;
    step.kind = expr.kind == ExprKind::kList ? StepKind::kList : StepKind::kMap;
    step.id = id;
    step.optional = expr.optional;
    for (const ExprId arg : expr.args) step.args.push_back(PlanExpr(arg));
    const bool is_constant =
        std::all_of(step.args.begin(), step.args.end(),
                    [&](StepId arg) { return IsConstant(arg); }) &&
        std::find(expr.optional.begin(), expr.optional.end(), true) ==
            expr.optional.end();
    return is_constant ? FoldAggregate(step) : Add(std::move(step));
  }

  StepId FoldAggregate(const Step& step) {
    if (step.kind == StepKind::kList) {
      std::vector<Value> elements;
      for (const StepId arg : step.args) {
        elements.push_back(StepAt(arg).constant);
      }
      return Constant(step.id, Value::ListOf(std::move(elements)));
    }
    auto map = std::make_shared<MapObject>();
    for (std::size_t i = 0; i + 1 < step.args.size(); i += 2) {
      const Value& key = StepAt(step.args[i]).constant;
      if (!IsLegalKey(key)) {
        // A wrong key is left to the evaluation: the error may never be
        // reached, as in `false && {1.5: 1} == {}`.
        return Add(step);
      }
      map->Set(key, StepAt(step.args[i + 1]).constant);
    }
    return Constant(step.id, Value::Of(Map(std::move(map))));
  }

  int NewSlot() {
    plan_.folds_by_slot.push_back(kNone);
    return static_cast<int>(plan_.folds_by_slot.size() - 1);
  }

  StepId PlanFold(ExprId id, const Expr& expr) {
    FoldPlan fold;
    fold.grows = expr.accumulator == kAccumulatorName;
    fold.init = PlanExpr(expr.args[kInit]);
    fold.range = PlanExpr(expr.args[kRange]);
    fold.accumulator = NewSlot();
    fold.variable = NewSlot();
    locals_.push_back({expr.accumulator, fold.accumulator});
    locals_.push_back({expr.iter_var, fold.variable});
    if (!expr.iter_var2.empty()) {
      fold.variable2 = NewSlot();
      locals_.push_back({expr.iter_var2, fold.variable2});
    }
    fold.condition = PlanExpr(expr.args[kCondition]);
    fold.step = PlanExpr(expr.args[kStep]);
    locals_.resize(locals_.size() - (expr.iter_var2.empty() ? 1 : 2));
    fold.result = PlanExpr(expr.args[kResult]);
    locals_.pop_back();
    Step step;
    step.kind = StepKind::kFold;
    step.id = id;
    step.fold = fold;
    const StepId made = Add(std::move(step));
    plan_.folds_by_slot[static_cast<std::size_t>(fold.accumulator)] = made;
    return made;
  }

  const Checked& checked_;
  Plan plan_;
  std::vector<SlotName> locals_;
  std::optional<Problem> problem_;
};

bool FitsType(const Type& type, const Value& value) {
  switch (type.kind) {
    case TypeKind::kDyn:
    case TypeKind::kParam:
      return true;
    case TypeKind::kNull:
      return value.Is<Null>();
    case TypeKind::kBool:
      return value.Is<bool>();
    case TypeKind::kInt:
      return value.Is<std::int64_t>();
    case TypeKind::kUint:
      return value.Is<std::uint64_t>();
    case TypeKind::kDouble:
      return value.Is<double>();
    case TypeKind::kString:
      return value.Is<String>();
    case TypeKind::kBytes:
      return value.Is<Bytes>();
    case TypeKind::kDuration:
      return value.Is<Duration>();
    case TypeKind::kTimestamp:
      return value.Is<Timestamp>();
    case TypeKind::kList:
      return value.Is<List>();
    case TypeKind::kMap:
      return value.Is<Map>();
    case TypeKind::kType:
      return value.Is<TypeValue>();
    case TypeKind::kOpaque:
      return value.Is<Optional>();
    case TypeKind::kObject:
      return type.name == kQuantityTypeName ? value.Is<QuantityValue>()
                                            : value.Is<SemverValue>();
    case TypeKind::kError:
      return false;
  }
  return false;
}

}  // namespace

ExprId Plan::IdOf(const Attribute& attribute) const {
  if (attribute.kind == Attribute::Kind::kConditional) {
    const ExprId if_true = IdOf(AttributeAt(attribute.if_true));
    return if_true == IdOf(AttributeAt(attribute.if_false)) ? if_true
                                                            : attribute.id;
  }
  return attribute.qualifiers.empty() ? attribute.id
                                      : attribute.qualifiers.back().id;
}

std::variant<Plan, Problem> MakePlan(const Checked& checked) {
  return Planner(checked).Run();
}

bool Fits(const Overload& overload, std::span<const Value> args) {
  if (overload.params.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!FitsType(*overload.params[i], args[i])) return false;
  }
  return true;
}

}  // namespace devmgr::cel
