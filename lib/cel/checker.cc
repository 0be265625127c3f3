// SPDX-License-Identifier: Apache-2.0
//
// The rules are those of cel-go's checker. Recursion is bounded by the depth of
// the tree, which the parser bounds.
#include "cel/checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "cel/unify.h"

namespace devmgr::cel {
namespace {

struct TypedName {
  std::string name;
  TypeRef type;
};

/// What an identifier refers to: a variable, or a type.
struct Resolution {
  TypeRef type;
  std::string variable;           ///< Its name in the environment.
  std::optional<Value> constant;  ///< The type, if it is one.
};

class Checker {
 public:
  Checker(Ast ast, const Environment& environment)
      : environment_(environment), ast_(std::move(ast)) {
    types_.resize(ast_.nodes.size());
    overloads_.resize(ast_.nodes.size());
  }

  std::variant<Checked, Problem> Run() {
    CheckExpr(ast_.root);
    for (std::size_t i = 0; i < types_.size() && !problem_; ++i) {
      // Arguments of macros that the expansion does not use were not checked.
      types_[i] = types_[i] ? unifier_.Resolve(types_[i], true)
                            : SimpleType(TypeKind::kDyn);
    }
    if (environment_.homogeneous_literals) CompareElements();
    if (unifier_.IsOver()) {
      return Problem{0, "the types of the expression are too complex"};
    }
    if (problem_) return *std::move(problem_);
    return Checked{std::move(ast_), std::move(types_), std::move(overloads_)};
  }

 private:
  /// Checks that the elements of a list, the keys of a map and the values of a
  /// map have one type. dyn is a type like any other here. Literals within the
  /// arguments of format() are exempt.
  void CompareElements() {
    std::vector<bool> exempt(ast_.nodes.size());
    // A parent has a larger index than its children.
    for (std::size_t i = ast_.nodes.size(); i > 0 && !problem_; --i) {
      const Expr& expr = ast_.nodes[i - 1];
      if (exempt[i - 1] || expr.name == "format") {
        for (const ExprId arg : expr.args) {
          exempt[static_cast<std::size_t>(arg)] = true;
        }
        if (expr.target != kNoExpr) {
          exempt[static_cast<std::size_t>(expr.target)] = true;
        }
      } else if (expr.kind == ExprKind::kList) {
        CompareElements(expr, 0, 1);
      } else if (expr.kind == ExprKind::kMap) {
        CompareElements(expr, 0, 2);
        CompareElements(expr, 1, 2);
      }
    }
  }

  void CompareElements(const Expr& expr, std::size_t first, std::size_t step) {
    for (std::size_t i = first; i < expr.args.size(); i += step) {
      const TypeRef wanted = ElementType(expr, first, step);
      const TypeRef type = ElementType(expr, i, step);
      if (!SameType(*wanted, *type)) Mismatch(expr.args[i], wanted, type);
    }
  }

  TypeRef ElementType(const Expr& expr, std::size_t i, std::size_t step) {
    TypeRef type = TypeAt(expr.args[i]);
    const bool is_key = step == 2 && i % 2 == 0;
    const bool optional =
        !is_key && i / step < expr.optional.size() && expr.optional[i / step];
    return optional && IsOptional(*type) ? type->params[0] : type;
  }

  TypeRef& TypeAt(ExprId id) { return types_[static_cast<std::size_t>(id)]; }

  void Report(ExprId where, std::string message) {
    if (!problem_) problem_ = Problem{ast_[where].offset, std::move(message)};
  }
  /// The type for a message, with the variables replaced whose type is known.
  std::string Shown(const TypeRef& type, bool free_to_dyn = false) {
    constexpr std::size_t kLimit = 200;
    return api::Readable(Describe(*unifier_.Resolve(type, free_to_dyn)),
                         kLimit);
  }
  TypeRef Failed(ExprId where, std::string message) {
    Report(where, std::move(message));
    return SimpleType(TypeKind::kError);
  }
  TypeRef Mismatch(ExprId where, const TypeRef& expected,
                   const TypeRef& actual) {
    return Failed(where, fmt::format("expected type '{}' but found '{}'",
                                     Shown(expected), Shown(actual)));
  }
  TypeRef Undeclared(ExprId where, const std::string& name) {
    if (IsUnsupportedFunction(name)) {
      return Failed(where, fmt::format("function '{}' is not supported", name));
    }
    return Failed(where,
                  fmt::format("undeclared reference to {} (in container '{}')",
                              api::Quoted(name), environment_.container));
  }

  TypeRef CheckExpr(ExprId id) {
    if (problem_ || unifier_.IsOver()) return SimpleType(TypeKind::kError);
    TypeRef type = CheckKind(id);
    if (type->size > kMaxTypeSize) {
      type = Failed(id, "the type of this is too large");
    }
    TypeAt(id) = type;
    return type;
  }

  TypeRef CheckKind(ExprId id) {
    switch (ast_[id].kind) {
      case ExprKind::kLiteral:
        return TypeOf(ast_[id].literal);
      case ExprKind::kIdent:
        return CheckIdent(id);
      case ExprKind::kSelect:
        return CheckSelect(id);
      case ExprKind::kCall:
        return CheckCall(id);
      case ExprKind::kList:
        return CheckList(id);
      case ExprKind::kMap:
        return CheckMap(id);
      case ExprKind::kFold:
        return CheckFold(id);
    }
    return SimpleType(TypeKind::kError);
  }

  const TypedName* FindLocal(std::string_view name) const {
    const auto found = std::find_if(
        locals_.rbegin(), locals_.rend(),
        [&](const TypedName& local) { return local.name == name; });
    return found == locals_.rend() ? nullptr : &*found;
  }

  std::optional<Resolution> FindGlobal(const std::string& name) const {
    for (const std::string& candidate : environment_.CandidateNames(name)) {
      const auto variable = environment_.variables.find(candidate);
      if (variable != environment_.variables.end()) {
        return Resolution{variable->second, candidate, std::nullopt};
      }
      if (const std::optional<TypeRef> type = FindTypeName(candidate)) {
        return Resolution{TypeType(*type), "", Value::OfType(*type)};
      }
    }
    return std::nullopt;
  }

  /// Turns node `id` into a reference to what was found. `hidden`: the variable
  /// of a macro has the same name.
  TypeRef Refer(ExprId id, Resolution found, bool hidden) {
    Expr& expr = ast_[id];
    expr.target = kNoExpr;
    if (found.constant) {
      expr.kind = ExprKind::kLiteral;
      expr.literal = *std::move(found.constant);
    } else {
      expr.kind = ExprKind::kIdent;
      expr.name = (hidden ? "." : "") + found.variable;
    }
    return found.type;
  }

  TypeRef CheckIdent(ExprId id) {
    const std::string name = ast_[id].name;
    const TypedName* local = FindLocal(name);
    if (local != nullptr) return local->type;
    std::optional<Resolution> found = FindGlobal(name);
    if (!found) return Undeclared(id, name);
    const bool hidden =
        name.front() == '.' && FindLocal(found->variable) != nullptr;
    return Refer(id, *std::move(found), hidden);
  }

  /// The name that a chain of selections spells, as a.b.c; empty when `id` is
  /// no such chain.
  std::string QualifiedName(ExprId id) const {
    std::string name;
    while (ast_[id].kind == ExprKind::kSelect && !ast_[id].test_only) {
      name.insert(0, "." + ast_[id].name);
      id = ast_[id].target;
    }
    return ast_[id].kind == ExprKind::kIdent ? ast_[id].name + name : "";
  }

  TypeRef CheckSelect(ExprId id) {
    const std::string name = QualifiedName(id);
    if (!name.empty()) {
      const std::string first = name.substr(0, name.find('.', 1));
      const bool is_local = first.front() != '.' && FindLocal(first) != nullptr;
      if (!is_local) {
        if (std::optional<Resolution> found = FindGlobal(name)) {
          const bool hidden = FindLocal(found->variable.substr(
                                  0, found->variable.find('.'))) != nullptr;
          return Refer(id, *std::move(found), hidden);
        }
      }
    }
    const TypeRef field = FieldType(id, ast_[id].target, ast_[id].name, false);
    return ast_[id].test_only ? SimpleType(TypeKind::kBool)
                              : unifier_.Resolve(field, false);
  }

  TypeRef FieldType(ExprId id, ExprId operand, const std::string& field,
                    bool optional) {
    TypeRef type = unifier_.Resolve(CheckExpr(operand), false);
    const bool was_optional = IsOptional(*type);
    if (was_optional) type = type->params[0];
    TypeRef result = SimpleType(TypeKind::kDyn);
    switch (type->kind) {
      case TypeKind::kMap:
        result = type->params[1];
        break;
      case TypeKind::kObject:
        result = ObjectField(id, type->name, field);
        break;
      case TypeKind::kParam:
        unifier_.Assign(SimpleType(TypeKind::kDyn), type);
        break;
      case TypeKind::kDyn:
      case TypeKind::kError:
        break;
      default:
        Report(id, fmt::format("type '{}' does not support field selection",
                               Shown(type)));
    }
    return was_optional || optional ? OptionalType(result) : result;
  }

  TypeRef ObjectField(ExprId id, const std::string& type,
                      const std::string& field) {
    const auto object = environment_.fields.find(type);
    if (object != environment_.fields.end()) {
      const auto found = object->second.find(field);
      if (found != object->second.end()) return found->second;
    }
    return Failed(id, fmt::format("undefined field {}", api::Quoted(field)));
  }

  TypeRef CheckCall(ExprId id) {
    if (ast_[id].name == "_?._") {
      const std::string field = ast_[ast_[id].args[1]].literal.text();
      CheckExpr(ast_[id].args[1]);
      return unifier_.Resolve(FieldType(id, ast_[id].args[0], field, true),
                              false);
    }
    for (const ExprId arg : std::vector<ExprId>(ast_[id].args)) CheckExpr(arg);
    const ExprId target = ast_[id].target;
    if (target != kNoExpr) {
      // Either a member function, or a function of a namespace as in
      // strings.quote(x).
      const std::string space = QualifiedName(target);
      const FunctionDeclaration* qualified =
          space.empty() ? nullptr : FindFunction(space + "." + ast_[id].name);
      if (qualified != nullptr) {
        ast_[id].target = kNoExpr;
        return ResolveOverload(id, *qualified);
      }
      if (!space.empty() &&
          IsUnsupportedFunction(space + "." + ast_[id].name)) {
        return Undeclared(id, space + "." + ast_[id].name);
      }
      CheckExpr(target);
    }
    const FunctionDeclaration* function = FindFunction(ast_[id].name);
    if (function == nullptr) return Undeclared(id, ast_[id].name);
    return ResolveOverload(id, *function);
  }

  const FunctionDeclaration* FindFunction(const std::string& name) const {
    for (const std::string& candidate : environment_.CandidateNames(name)) {
      const auto* function = environment_.library->Find(candidate);
      if (function != nullptr) return function;
    }
    return nullptr;
  }

  std::vector<TypeRef> ArgumentTypes(ExprId id) {
    std::vector<TypeRef> types;
    const Expr& call = ast_[id];
    if (call.target != kNoExpr) types.push_back(TypeAt(call.target));
    for (const ExprId arg : call.args) types.push_back(TypeAt(arg));
    return types;
  }

  TypeRef ResolveOverload(ExprId id, const FunctionDeclaration& function) {
    if (problem_) return SimpleType(TypeKind::kError);
    ast_[id].name = function.name;
    if (function.name == "_&&_" || function.name == "_||_") {
      return CheckLogic(id, function);
    }
    const bool is_member = ast_[id].target != kNoExpr;
    const std::vector<TypeRef> types = ArgumentTypes(id);
    TypeRef result;
    auto& fitting = overloads_[static_cast<std::size_t>(id)];
    for (const Overload& overload : function.overloads) {
      if (overload.is_member != is_member ||
          overload.params.size() != types.size()) {
        continue;
      }
      std::vector<TypeRef> wanted = overload.params;
      wanted.push_back(overload.result);
      wanted = unifier_.Instantiate(wanted);
      const TypeRef yields = wanted.back();
      wanted.pop_back();
      if (!unifier_.AssignAll(types, wanted)) continue;
      fitting.push_back(&overload);
      const TypeRef resolved = unifier_.Resolve(yields, false);
      if (!result) {
        result = resolved;
      } else if (!IsDyn(*result) && !SameType(*result, *resolved)) {
        result = SimpleType(TypeKind::kDyn);
      }
    }
    return result ? result : NoMatch(id, function.name, types);
  }

  /// Both operands of && and || are bool or dyn.
  TypeRef CheckLogic(ExprId id, const FunctionDeclaration& function) {
    overloads_[static_cast<std::size_t>(id)] = {&function.overloads.front()};
    const TypeRef boolean = SimpleType(TypeKind::kBool);
    for (const ExprId arg : ast_[id].args) {
      if (!unifier_.Assign(TypeAt(arg), boolean)) {
        return Mismatch(arg, boolean, TypeAt(arg));
      }
    }
    return boolean;
  }

  TypeRef NoMatch(ExprId id, const std::string& function,
                  const std::vector<TypeRef>& types) {
    std::string text;
    const bool is_member = ast_[id].target != kNoExpr;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string type = Shown(types[i], true);
      if (i == 0 && is_member) {
        text = type + ".(";
        continue;
      }
      if (i > (is_member ? 1U : 0U)) text += ", ";
      text += type;
    }
    return Failed(
        id,
        fmt::format("found no matching overload for '{}' applied to '{}{})'",
                    function, is_member ? "" : "(", text));
  }

  TypeRef Join(const TypeRef& before, const TypeRef& type) {
    if (!before) return type;
    if (unifier_.Assign(before, type)) return MoreGeneral(before, type);
    return SimpleType(TypeKind::kDyn);
  }

  /// The type of an element: what the optional holds if it was written with
  /// `?`.
  TypeRef Unwrap(ExprId where, TypeRef type, bool optional) {
    if (!optional) return type;
    type = unifier_.Resolve(type, false);
    if (IsOptional(*type)) return type->params[0];
    if (!IsDyn(*type)) return Mismatch(where, OptionalType(type), type);
    return type;
  }

  TypeRef CheckList(ExprId id) {
    TypeRef joined;
    for (std::size_t i = 0; i < ast_[id].args.size(); ++i) {
      const ExprId element = ast_[id].args[i];
      const TypeRef type = CheckExpr(element);
      const bool optional =
          i < ast_[id].optional.size() && ast_[id].optional[i];
      joined = Join(joined, Unwrap(element, type, optional));
    }
    return ListType(joined ? joined : unifier_.NewVariable());
  }

  TypeRef CheckMap(ExprId id) {
    TypeRef keys;
    TypeRef values;
    for (std::size_t i = 0; i + 1 < ast_[id].args.size(); i += 2) {
      const ExprId key = ast_[id].args[i];
      const ExprId value = ast_[id].args[i + 1];
      keys = Join(keys, CheckExpr(key));
      const TypeRef type = CheckExpr(value);
      values = Join(values, Unwrap(value, type, ast_[id].optional[i / 2]));
    }
    if (!keys) {
      keys = unifier_.NewVariable();
      values = unifier_.NewVariable();
    }
    return MapType(keys, values);
  }

  /// The types of the iteration variables of a loop over `range`.
  std::vector<TypeRef> ElementTypes(ExprId range_id, bool two) {
    const TypeRef range = unifier_.Resolve(TypeAt(range_id), false);
    switch (range->kind) {
      case TypeKind::kList:
        if (two) return {SimpleType(TypeKind::kInt), range->params[0]};
        return {range->params[0]};
      case TypeKind::kMap:
        return {range->params[0], range->params[1]};
      case TypeKind::kDyn:
      case TypeKind::kError:
      case TypeKind::kParam: {
        const TypeRef dyn = SimpleType(TypeKind::kDyn);
        unifier_.Assign(dyn, range);
        return {dyn, dyn};
      }
      default: {
        const TypeRef failed =
            Failed(range_id,
                   fmt::format("expression of type '{}' cannot be range of a "
                               "comprehension (must be list, map, or dynamic)",
                               Shown(range)));
        return {failed, failed};
      }
    }
  }

  TypeRef CheckFold(ExprId id) {
    const Expr fold = ast_[id];
    CheckExpr(fold.args[kRange]);
    const TypeRef accumulator = CheckExpr(fold.args[kInit]);
    if (problem_) return accumulator;
    const bool two = !fold.iter_var2.empty();
    const std::vector<TypeRef> elements = ElementTypes(fold.args[kRange], two);
    locals_.push_back({fold.accumulator, accumulator});
    locals_.push_back({fold.iter_var, elements[0]});
    if (two) locals_.push_back({fold.iter_var2, elements[1]});
    AssertType(fold.args[kCondition], SimpleType(TypeKind::kBool));
    AssertType(fold.args[kStep], accumulator);
    locals_.resize(locals_.size() - (two ? 2 : 1));
    const TypeRef result = CheckExpr(fold.args[kResult]);
    locals_.pop_back();
    return unifier_.Resolve(result, false);
  }

  void AssertType(ExprId id, const TypeRef& wanted) {
    const TypeRef type = CheckExpr(id);
    if (!problem_ && !unifier_.Assign(wanted, type)) {
      Mismatch(id, wanted, type);
    }
  }

  const Environment& environment_;
  Ast ast_;
  Unifier unifier_;
  std::vector<TypeRef> types_;
  std::vector<std::vector<const Overload*>> overloads_;
  std::vector<TypedName> locals_;
  std::optional<Problem> problem_;
};

}  // namespace

std::variant<Checked, Problem> Check(Ast ast, const Environment& environment) {
  return Checker(std::move(ast), environment).Run();
}

}  // namespace devmgr::cel
