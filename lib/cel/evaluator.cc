// SPDX-License-Identifier: Apache-2.0
#include "cel/evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cel/compare.h"
#include "cel/qualify.h"

namespace devmgr::cel {
namespace {

constexpr std::uint64_t kRoundsBetweenChecks = 100;
constexpr std::size_t kUsualArguments = 4;

/// The value that a path led to. `wrapped`: a part of the path was optional, so
/// that the value of the whole path is an optional.
struct Resolved {
  Value value;
  bool wrapped = false;
};

class Evaluator {
 public:
  Evaluator(const Plan& plan, std::span<const Value> globals,
            const EvaluationOptions& options)
      : plan_(plan),
        globals_(globals),
        options_(options),
        tracker_(options.cost_limit, plan.ids),
        work_(options.work_limit),
        slots_(plan.folds_by_slot.size()) {
    arguments_.reserve(kUsualArguments);
  }

  Evaluation Run() {
    Evaluation evaluation;
    evaluation.value = Run(plan_.root);
    if (!stopped_ && work_.IsOver()) Stop(Evaluation::End::kWorkLimit);
    evaluation.end = end_;
    evaluation.cost = tracker_.cost();
    return evaluation;
  }

 private:
  struct Slot {
    Value value;
    /// False for an accumulator that was not read yet: it is initialised when
    /// it is read first.
    bool ready = false;
  };

  Slot& SlotAt(int slot) { return slots_[static_cast<std::size_t>(slot)]; }

  /// Ends the evaluation: all further steps yield an error at once.
  Value Stop(Evaluation::End end) {
    if (!stopped_) end_ = end;
    stopped_ = true;
    return Value::Failed("the evaluation was stopped");
  }

  /// Evaluates a step, and counts its cost.
  Value Run(StepId id) {
    if (stopped_) return Value::Failed("the evaluation was stopped");
    const Step& step = plan_.At(id);
    Value value = RunKind(step);
    if (stopped_) return value;
    if (DepthOf(value) > kMaxValueDepth) {
      value = Value::Failed("the value is nested too deeply");
    }
    tracker_.Push(step.id);
    const Evaluation::End exceeded = ExceededLimit();
    if (exceeded != Evaluation::End::kDone) return Stop(exceeded);
    return value;
  }

  /// Which limit was exceeded; kDone when none was.
  Evaluation::End ExceededLimit() const {
    if (tracker_.IsOverLimit()) return Evaluation::End::kCostLimit;
    return work_.IsOver() ? Evaluation::End::kWorkLimit
                          : Evaluation::End::kDone;
  }

  Value RunKind(const Step& step) {
    switch (step.kind) {
      case StepKind::kConstant:
        return step.constant;
      case StepKind::kAttribute:
      case StepKind::kHas:
        return RunAttribute(step);
      case StepKind::kAnd:
        return RunLogic(step, false);
      case StepKind::kOr:
        return RunLogic(step, true);
      case StepKind::kNotStrictlyFalse:
        return RunNotStrictlyFalse(step);
      case StepKind::kEqual:
      case StepKind::kNotEqual:
      case StepKind::kCall:
        return RunCall(step);
      case StepKind::kOptionalOr:
      case StepKind::kOptionalOrValue:
        return RunOptionalOr(step);
      case StepKind::kSetMembership:
        return RunMembership(step);
      case StepKind::kList:
        return RunList(step);
      case StepKind::kMap:
        return RunMap(step);
      case StepKind::kFold:
        return RunFold(step);
    }
    return Value();
  }

  // -- Variables and paths --------------------------------------------------

  Value RunAttribute(const Step& step) {
    const Attribute& attribute = plan_.AttributeAt(step.attribute);
    Value value = Resolve(attribute);
    if (attribute.kind == Attribute::Kind::kConditional) {
      tracker_.Drop(plan_.IdOf(plan_.AttributeAt(attribute.if_false)));
      tracker_.Drop(plan_.IdOf(plan_.AttributeAt(attribute.if_true)));
      tracker_.Drop(plan_.At(attribute.operand).id);
    } else {
      tracker_.Drop(plan_.IdOf(attribute));
      tracker_.Add(1);
    }
    if (step.kind != StepKind::kHas) return value;
    // has() itself is free; the path that leads to its field is not.
    tracker_.Remove(1);
    const auto* optional = value.As<Optional>();
    return optional == nullptr ? value
                               : Value::Bool(optional->value != nullptr);
  }

  Value Resolve(const Attribute& attribute) {
    switch (attribute.kind) {
      case Attribute::Kind::kConditional:
        return ResolveConditional(attribute);
      case Attribute::Kind::kRelative:
        return Qualify(Run(attribute.operand), attribute);
      case Attribute::Kind::kLocal:
        return Qualify(LocalValue(attribute.slot), attribute);
      case Attribute::Kind::kGlobal:
        return Qualify(globals_[static_cast<std::size_t>(attribute.slot)],
                       attribute);
    }
    return Value();
  }

  Value ResolveConditional(const Attribute& attribute) {
    const Value condition = Run(attribute.operand);
    const auto* choice = condition.As<bool>();
    if (choice == nullptr) {
      return condition.IsError() ? condition : NoSuchOverload("_?_:_");
    }
    return Resolve(
        plan_.AttributeAt(*choice ? attribute.if_true : attribute.if_false));
  }

  Value LocalValue(int slot) {
    const StepId fold = plan_.folds_by_slot[static_cast<std::size_t>(slot)];
    if (fold != kNone && !SlotAt(slot).ready) {
      SlotAt(slot).ready = true;
      Value value = Run(plan_.At(fold).fold.init);
      if (plan_.At(fold).fold.grows) value = Growing(value);
      SlotAt(slot).value = std::move(value);
    }
    return SlotAt(slot).value;
  }

  /// An empty list or map that may grow in place, instead of the constant that
  /// all evaluations share.
  static Value Growing(const Value& value) {
    if (value.Is<List>()) {
      auto list = std::make_shared<ListObject>();
      list->growing = true;
      return Value::Of(List(std::move(list)));
    }
    if (value.Is<Map>()) {
      auto map = std::make_shared<MapObject>();
      map->growing = true;
      return Value::Of(Map(std::move(map)));
    }
    return value;
  }

  /// Follows the path of `attribute` from `value`.
  Value Qualify(Value value, const Attribute& attribute) {
    if (value.IsError() || attribute.qualifiers.empty()) return value;
    bool wrapped = false;
    if (const auto* optional = value.As<Optional>()) {
      if (!optional->value) return value;
      value = Value(*optional->value);
      wrapped = true;
    }
    for (const Qualifier& qualifier : attribute.qualifiers) {
      wrapped = wrapped || qualifier.optional;
      std::optional<Value> next = Apply(qualifier, value, wrapped);
      if (!next) return Value::OptionalNone();
      if (next->IsError()) return *next;
      value = *std::move(next);
    }
    return wrapped ? Value::OptionalOf(std::move(value)) : value;
  }

  /// Looks up one part of a path. Returns nothing when the part is missing and
  /// may be missing.
  std::optional<Value> Apply(const Qualifier& qualifier, const Value& value,
                             bool may_be_missing) {
    if (stopped_) return Value::Failed("the evaluation was stopped");
    Value computed;
    if (qualifier.kind != Qualifier::Kind::kConstant) {
      computed = KeyOf(qualifier);
      if (stopped_) return computed;
    }
    const Value& key = qualifier.kind == Qualifier::Kind::kConstant
                           ? qualifier.constant
                           : computed;
    bool present = false;
    Value found = key.IsError() ? key
                                : LookUp(value, key,
                                         may_be_missing || qualifier.test_only,
                                         options_.strict_presence, present);
    if (qualifier.test_only && !found.IsError()) {
      found = Value::Bool(present);
      present = present || !may_be_missing;
    }
    // A part that may be missing, and is, costs nothing. An error costs as much
    // as a value, except in a path with an optional part.
    if (may_be_missing && !present) {
      if (found.IsError()) return found;
      return std::nullopt;
    }
    if (qualifier.kind == Qualifier::Kind::kStep) tracker_.Drop(qualifier.id);
    tracker_.Add(1);
    tracker_.Push(qualifier.id);
    const Evaluation::End exceeded = ExceededLimit();
    if (exceeded != Evaluation::End::kDone) return Stop(exceeded);
    return found;
  }

  Value KeyOf(const Qualifier& qualifier) {
    switch (qualifier.kind) {
      case Qualifier::Kind::kConstant:
        return qualifier.constant;
      case Qualifier::Kind::kAttribute:
        return Resolve(plan_.AttributeAt(qualifier.attribute));
      case Qualifier::Kind::kStep:
        return Run(qualifier.step);
    }
    return Value();
  }

  // -- Operators that do not need all of their operands ---------------------

  /// Evaluates && and ||. An operand that is `decisive` decides, even if the
  /// other one is an error.
  Value RunLogic(const Step& step, bool decisive) {
    std::optional<Value> error;
    std::optional<Value> result;
    for (const StepId arg : step.args) {
      const Value value = Run(arg);
      const auto* decided = value.As<bool>();
      if (decided != nullptr && *decided == decisive) {
        result = Value::Bool(decisive);
        break;
      }
      if (decided == nullptr && !error) {
        error = value.IsError() ? value : NoSuchOverload(step.function);
      }
    }
    for (const StepId arg : step.args) tracker_.Drop(plan_.At(arg).id);
    if (result) return *result;
    return error ? *error : Value::Bool(!decisive);
  }

  Value RunNotStrictlyFalse(const Step& step) {
    const Value value = Run(step.args[0]);
    if (DropArguments(step)) tracker_.Add(1);
    const auto* decided = value.As<bool>();
    return Value::Bool(decided == nullptr || *decided);
  }

  Value RunOptionalOr(const Step& step) {
    const Value value = Run(step.args[0]);
    if (value.IsError()) return value;
    const auto* optional = value.As<Optional>();
    if (optional == nullptr) return NoSuchOverload(step.function);
    if (!optional->value) return Run(step.args[1]);
    return step.kind == StepKind::kOptionalOr ? value : *optional->value;
  }

  Value RunMembership(const Step& step) {
    Value value = Run(step.args[0]);
    if (value.IsError()) return value;
    const Value& list = plan_.At(step.args[1]).constant;
    for (const Value& element : (*list.As<List>())->elements) {
      if (Equal(element, value, work_)) return Value::Bool(true);
    }
    return Value::Bool(false);
  }

  // -- Calls ----------------------------------------------------------------

  Value RunCall(const Step& step) {
    const std::size_t first = arguments_.size();
    std::optional<Value> error;
    for (const StepId arg : step.args) {
      Value value = Run(arg);
      if (stopped_) return value;
      if (value.IsError() && !error) error = value;
      arguments_.push_back(std::move(value));
      if (error && step.stops_early) break;
    }
    const std::span<const Value> args = std::span(arguments_).subspan(first);
    Value result = error ? *std::move(error) : Invoke(step, args);
    CountCall(step, args, result);
    arguments_.resize(first);
    return result;
  }

  Value Invoke(const Step& step, std::span<const Value> args) {
    if (step.kind == StepKind::kEqual) {
      return Value::Bool(Equal(args[0], args[1], work_));
    }
    if (step.kind == StepKind::kNotEqual) {
      return Value::Bool(!Equal(args[0], args[1], work_));
    }
    for (const Overload* overload : step.candidates) {
      if (overload->run != nullptr && Fits(*overload, args)) {
        const Args call{args, work_};
        return step.regex ? CallWithPattern(step.function, *step.regex, call)
                          : overload->run(call);
      }
    }
    return NoSuchOverload(step.function);
  }

  void CountCall(const Step& step, std::span<const Value> args,
                 const Value& result) {
    if (!DropArguments(step) || args.size() != step.args.size()) return;
    tracker_.Add(CallCost(step.cost_rule, args, result));
  }

  /// Drops the steps of the arguments, the last one first. Returns false at the
  /// first one that is not on the stack.
  bool DropArguments(const Step& step) {
    return std::all_of(step.args.rbegin(), step.args.rend(), [&](StepId arg) {
      return tracker_.Drop(plan_.At(arg).id);
    });
  }

  // -- Lists and maps -------------------------------------------------------

  void CountAggregate(const Step& step, std::uint64_t cost) {
    DropArguments(step);
    tracker_.Add(cost);
  }

  static bool IsOptionalAt(const Step& step, std::size_t i) {
    return i < step.optional.size() && step.optional[i];
  }

  Value RunList(const Step& step) {
    std::vector<Value> elements;
    std::optional<Value> error;
    for (std::size_t i = 0; i < step.args.size() && !error; ++i) {
      Value value = Run(step.args[i]);
      if (!value.IsError() && IsOptionalAt(step, i)) {
        const auto* optional = value.As<Optional>();
        if (optional != nullptr && !optional->value) continue;
        value = optional != nullptr
                    ? Value(*optional->value)
                    : Value::Failed(
                          "cannot initialize optional list element "
                          "from non-optional value " +
                          Describe(value));
      }
      if (value.IsError()) error = value;
      elements.push_back(std::move(value));
    }
    CountAggregate(step, kListCost);
    return error ? *error : Value::ListOf(std::move(elements));
  }

  Value RunMap(const Step& step) {
    auto map = std::make_shared<MapObject>();
    std::optional<Value> error;
    for (std::size_t i = 0; i + 1 < step.args.size() && !error; i += 2) {
      error = AddEntry(step, i, *map);
    }
    CountAggregate(step, kMapCost);
    return error ? *error : Value::Of(Map(std::move(map)));
  }

  std::optional<Value> AddEntry(const Step& step, std::size_t i,
                                MapObject& map) {
    const Value key = Run(step.args[i]);
    if (key.IsError()) return key;
    Value value = Run(step.args[i + 1]);
    if (value.IsError()) return value;
    if (!IsLegalKey(key)) {
      return Value::Failed("unsupported key type: " + TypeName(*TypeOf(key)));
    }
    if (IsOptionalAt(step, i / 2)) {
      const auto* optional = value.As<Optional>();
      if (optional == nullptr) {
        return Value::Failed(
            "cannot initialize optional entry from non-optional value " +
            Describe(value));
      }
      if (!optional->value) return std::nullopt;
      value = Value(*optional->value);
    }
    // The last value of a repeated key counts, as in cel-go.
    map.Set(key, std::move(value));
    return std::nullopt;
  }

  // -- Folds ----------------------------------------------------------------

  Value RunFold(const Step& step) {
    const FoldPlan& fold = step.fold;
    SlotAt(fold.accumulator) = Slot();
    const Value range = Run(fold.range);
    Value result = range;
    if (!range.IsError()) {
      result = RunRounds(fold, range);
      SlotAt(fold.accumulator) = Slot();
    }
    tracker_.Drop(plan_.At(fold.range).id);
    return result;
  }

  Value RunRounds(const FoldPlan& fold, const Value& range) {
    if (const auto* list = range.As<List>()) {
      const std::vector<Value>& elements = (*list)->elements;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const Value index = Value::Int(static_cast<std::int64_t>(i));
        if (!RunRound(fold, index, elements[i], elements[i])) break;
      }
    } else if (const auto* map = range.As<Map>()) {
      for (const MapEntry& entry : (*map)->entries()) {
        if (!RunRound(fold, entry.key, entry.value, entry.key)) break;
      }
    } else {
      return Value::Failed("got '" + TypeName(*TypeOf(range)) +
                           "', expected iterable type");
    }
    if (stopped_) return Value::Failed("the evaluation was stopped");
    return Finished(Run(fold.result));
  }

  /// Ends the growing in place of a list or map that a fold has built.
  static Value Finished(Value value) {
    if (const auto* list = value.As<List>()) (*list)->growing = false;
    if (const auto* map = value.As<Map>()) (*map)->growing = false;
    return value;
  }

  /// Runs one round. Returns false when it was the last one. `single` is the
  /// value of the variable in a fold over one variable; `first` and `second`
  /// are those in a fold over two.
  bool RunRound(const FoldPlan& fold, const Value& first, const Value& second,
                const Value& single) {
    if (fold.variable2 != kNone) {
      SlotAt(fold.variable).value = first;
      SlotAt(fold.variable2).value = second;
    } else {
      SlotAt(fold.variable).value = single;
    }
    const Value condition = Run(fold.condition);
    const auto* go_on = condition.As<bool>();
    if (stopped_ || (go_on != nullptr && !*go_on)) return false;
    Value next = Run(fold.step);
    if (stopped_) return false;
    SlotAt(fold.accumulator).value = std::move(next);
    SlotAt(fold.accumulator).ready = true;
    return !IsInterrupted();
  }

  bool IsInterrupted() {
    if (++rounds_ % kRoundsBetweenChecks != 0 ||
        options_.interrupted == nullptr || !options_.interrupted->load()) {
      return false;
    }
    Stop(Evaluation::End::kInterrupted);
    return true;
  }

  const Plan& plan_;
  std::span<const Value> globals_;
  const EvaluationOptions& options_;
  CostTracker tracker_;
  Work work_;
  std::vector<Slot> slots_;
  /// Of the calls that are being evaluated, those of the innermost one last.
  std::vector<Value> arguments_;
  std::uint64_t rounds_ = 0;
  Evaluation::End end_ = Evaluation::End::kDone;
  bool stopped_ = false;
};

}  // namespace

Evaluation Evaluate(const Plan& plan, std::span<const Value> globals,
                    const EvaluationOptions& options) {
  return Evaluator(plan, globals, options).Run();
}

}  // namespace devmgr::cel
