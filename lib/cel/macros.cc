// SPDX-License-Identifier: Apache-2.0
//
// Expands macros. Their expansions have the same nodes as those of cel-go,
// since costs are counted by node.
#include "cel/macros.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "api/quote.h"

namespace devmgr::cel {
namespace {

class Macro {
 public:
  using Ids = std::vector<ExprId>;

  /// The first `variables` arguments are names of iteration variables.
  Macro(AstBuilder& builder, std::uint32_t offset, ExprId target, Ids args,
        std::size_t variables)
      : builder_(builder),
        offset_(offset),
        target_(target),
        args_(std::move(args)),
        variable_count_(variables) {}

  ExprId Has() {
    const Expr& arg = builder_[args_[0]];
    if (arg.kind != ExprKind::kSelect || arg.test_only) {
      return Fail(args_[0], "invalid argument to has() macro");
    }
    const ExprId select = builder_.Select(offset_, arg.target, arg.name);
    builder_.ast()[select].test_only = true;
    return select;
  }

  ExprId All() {
    if (!TakeVariables()) return target_;
    return Fold(Literal(Value::Bool(true)),
                Call("@not_strictly_false", {Accumulator()}),
                Call("_&&_", {Accumulator(), Body()}), Accumulator());
  }

  ExprId Exists() {
    if (!TakeVariables()) return target_;
    return Fold(Literal(Value::Bool(false)),
                Call("@not_strictly_false", {Call("!_", {Accumulator()})}),
                Call("_||_", {Accumulator(), Body()}), Accumulator());
  }

  ExprId ExistsOne() {
    if (!TakeVariables()) return target_;
    const ExprId step = Call(
        "_?_:_", {Body(), Call("_+_", {Accumulator(), Literal(Value::Int(1))}),
                  Accumulator()});
    return Fold(Literal(Value::Int(0)), Literal(Value::Bool(true)), step,
                Call("_==_", {Accumulator(), Literal(Value::Int(1))}));
  }

  /// map() and transformList(). With one more argument they have a filter.
  ExprId TransformList() {
    if (!TakeVariables()) return target_;
    return Collect(
        builder_.List(offset_, {}),
        Call("_+_", {Accumulator(), builder_.List(offset_, {Body()})}));
  }

  ExprId Filter() {
    const ExprId variable = args_[0];
    if (!TakeVariables()) return target_;
    const ExprId keep =
        Call("_+_", {Accumulator(), builder_.List(offset_, {variable})});
    return Fold(builder_.List(offset_, {}), Literal(Value::Bool(true)),
                Call("_?_:_", {Body(), keep, Accumulator()}), Accumulator());
  }

  ExprId TransformMap() {
    if (!TakeVariables()) return target_;
    return Collect(
        builder_.Map(offset_, {}),
        Call("cel.@mapInsert",
             {Accumulator(), builder_.Ident(offset_, variables_[0]), Body()}));
  }

  ExprId TransformMapEntry() {
    if (!TakeVariables()) return target_;
    return Collect(builder_.Map(offset_, {}),
                   Call("cel.@mapInsert", {Accumulator(), Body()}));
  }

  ExprId Bind() {
    const std::string name = SimpleName(args_[0]);
    if (name.empty()) {
      return Fail(args_[0],
                  "cel.bind() variable names must be simple identifiers");
    }
    return BindTo(name, args_[1], args_[2]);
  }

  ExprId OptionalMap(bool flat) {
    const std::string name = SimpleName(args_[0]);
    if (name.empty()) {
      return Fail(args_[0],
                  "the first argument of optMap() and optFlatMap() must be a "
                  "simple identifier");
    }
    const ExprId has_value = builder_.Call(offset_, "hasValue", {}, target_);
    const ExprId value =
        builder_.Call(offset_, "value", {}, builder_.Copy(target_));
    ExprId mapped = BindTo(name, value, args_[1]);
    if (!flat) mapped = Call("optional.of", {mapped});
    return Call("_?_:_", {has_value, mapped, Call("optional.none", {})});
  }

  ExprId SortBy() {
    const std::string input = "@__sortBy_input__";
    const ExprId sorted = target_;
    target_ = builder_.Ident(offset_, input);
    const ExprId keys = TransformList();
    const ExprId call = builder_.Call(offset_, "@sortByAssociatedKeys", {keys},
                                      builder_.Ident(offset_, input));
    return BindTo(input, sorted, call);
  }

 private:
  ExprId Fail(ExprId where, std::string message) {
    builder_.Report(builder_[where].offset, std::move(message));
    return where;
  }

  std::string SimpleName(ExprId id) const {
    const Expr& expr = builder_[id];
    return expr.kind == ExprKind::kIdent && expr.name.front() != '.' ? expr.name
                                                                     : "";
  }

  /// Reads the names of the iteration variables. Reports a problem and returns
  /// false when one is wrong.
  bool TakeVariables() {
    for (std::size_t i = 0; i < variable_count_; ++i) {
      std::string name = SimpleName(args_[i]);
      if (name.empty()) {
        Fail(args_[i], "argument must be a simple name");
        return false;
      }
      if (!variables_.empty() && variables_[0] == name) {
        Fail(args_[i], "duplicate variable name: " + api::Quoted(name));
        return false;
      }
      if (name == "__result__") {
        Fail(args_[i], "iteration variable overwrites accumulator variable");
        return false;
      }
      variables_.push_back(std::move(name));
    }
    return true;
  }

  ExprId Body() const { return args_.back(); }
  ExprId Literal(Value value) {
    return builder_.Literal(offset_, std::move(value));
  }
  ExprId Call(std::string_view function, Ids args) {
    return builder_.Call(offset_, function, std::move(args));
  }
  ExprId Accumulator() {
    return builder_.Ident(offset_, std::string(kAccumulatorName));
  }

  ExprId Fold(ExprId init, ExprId condition, ExprId step, ExprId result) {
    return builder_.Fold(offset_, variables_, kAccumulatorName, target_, init,
                         condition, step, result);
  }

  /// A fold whose accumulator becomes `step` for each element; for those that
  /// pass the filter if there is one.
  ExprId Collect(ExprId init, ExprId step) {
    if (args_.size() == variable_count_ + 2) {
      step = Call("_?_:_", {args_[variable_count_], step, Accumulator()});
    }
    return Fold(init, Literal(Value::Bool(true)), step, Accumulator());
  }

  ExprId BindTo(const std::string& name, ExprId value, ExprId result) {
    const ExprId range = builder_.List(offset_, {});
    return builder_.Fold(offset_, {std::string(kUnusedName)}, name, range,
                         value, Literal(Value::Bool(false)),
                         builder_.Ident(offset_, name), result);
  }

  AstBuilder& builder_;
  std::uint32_t offset_;
  ExprId target_;
  Ids args_;
  std::size_t variable_count_;
  std::vector<std::string> variables_;
};

ExprId OptMap(Macro& macro) { return macro.OptionalMap(false); }
ExprId OptFlatMap(Macro& macro) { return macro.OptionalMap(true); }
template <ExprId (Macro::*kMethod)()>
ExprId Run(Macro& macro) {
  return (macro.*kMethod)();
}

struct MacroRow {
  std::string_view name;
  bool has_target;
  std::size_t min_args;
  std::size_t max_args;
  std::size_t variables;
  ExprId (*expand)(Macro&);
};

constexpr std::array kMacros = {
    MacroRow{"has", false, 1, 1, 0, Run<&Macro::Has>},
    MacroRow{"all", true, 2, 2, 1, Run<&Macro::All>},
    MacroRow{"all", true, 3, 3, 2, Run<&Macro::All>},
    MacroRow{"exists", true, 2, 2, 1, Run<&Macro::Exists>},
    MacroRow{"exists", true, 3, 3, 2, Run<&Macro::Exists>},
    MacroRow{"exists_one", true, 2, 2, 1, Run<&Macro::ExistsOne>},
    MacroRow{"existsOne", true, 2, 2, 1, Run<&Macro::ExistsOne>},
    MacroRow{"existsOne", true, 3, 3, 2, Run<&Macro::ExistsOne>},
    MacroRow{"map", true, 2, 3, 1, Run<&Macro::TransformList>},
    MacroRow{"filter", true, 2, 2, 1, Run<&Macro::Filter>},
    MacroRow{"transformList", true, 3, 4, 2, Run<&Macro::TransformList>},
    MacroRow{"transformMap", true, 3, 4, 2, Run<&Macro::TransformMap>},
    MacroRow{"transformMapEntry", true, 3, 4, 2,
             Run<&Macro::TransformMapEntry>},
    MacroRow{"bind", true, 3, 3, 0, Run<&Macro::Bind>},
    MacroRow{"optMap", true, 2, 2, 0, OptMap},
    MacroRow{"optFlatMap", true, 2, 2, 0, OptFlatMap},
    MacroRow{"sortBy", true, 2, 2, 1, Run<&Macro::SortBy>},
};

}  // namespace

std::optional<ExprId> ExpandMacro(AstBuilder& builder, std::uint32_t offset,
                                  std::string_view name, ExprId target,
                                  const std::vector<ExprId>& args) {
  const auto* row = std::find_if(
      kMacros.begin(), kMacros.end(), [&](const MacroRow& candidate) {
        return candidate.name == name &&
               candidate.has_target == (target != kNoExpr) &&
               args.size() >= candidate.min_args &&
               args.size() <= candidate.max_args;
      });
  if (row == kMacros.end()) return std::nullopt;
  // bind() is a macro only behind the namespace `cel`.
  if (name == "bind" && (builder[target].kind != ExprKind::kIdent ||
                         builder[target].name != "cel")) {
    return std::nullopt;
  }
  Macro macro(builder, offset, target, args, row->variables);
  const ExprId expanded = row->expand(macro);
  builder.CountAsOneLevel(expanded, target, args);
  return expanded;
}

}  // namespace devmgr::cel
