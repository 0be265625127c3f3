// SPDX-License-Identifier: Apache-2.0
#include "cel/unify.h"

#include <algorithm>
#include <functional>
#include <map>

namespace devmgr::cel {
namespace {

bool IsDynOrError(const Type& type) {
  return IsDyn(type) || type.kind == TypeKind::kError;
}

bool IsNullable(const Type& type) {
  return type.kind == TypeKind::kOpaque || type.kind == TypeKind::kObject ||
         type.kind == TypeKind::kDuration ||
         type.kind == TypeKind::kTimestamp || type.kind == TypeKind::kNull;
}

bool IsEqualOrLessSpecific(const Type& a, const Type& b) {
  if (IsDyn(a) || a.kind == TypeKind::kParam) return true;
  if (IsDyn(b) || b.kind == TypeKind::kParam || a.kind != b.kind) return false;
  switch (a.kind) {
    case TypeKind::kOpaque:
    case TypeKind::kList:
    case TypeKind::kMap:
      return a.name == b.name &&
             std::equal(a.params.begin(), a.params.end(), b.params.begin(),
                        b.params.end(), [](const TypeRef& x, const TypeRef& y) {
                          return IsEqualOrLessSpecific(*x, *y);
                        });
    case TypeKind::kType:
      return true;
    default:
      return SameType(a, b);
  }
}

}  // namespace

TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b) {
  return IsEqualOrLessSpecific(*a, *b) ? a : b;
}

TypeRef Unifier::NewVariable() {
  return ParamType("_var" + std::to_string(variables_++));
}

const TypeRef* Unifier::Find(const Type& variable) const {
  if (variable.kind != TypeKind::kParam) return nullptr;
  const auto found = bound_.find(variable.name);
  return found == bound_.end() ? nullptr : &found->second;
}

void Unifier::Bind(const std::string& variable, TypeRef type) {
  TypeRef& place = bound_[variable];
  undo_.emplace_back(variable, place);
  place = std::move(type);
}

void Unifier::RollBack(std::size_t mark) {
  while (undo_.size() > mark) {
    auto& [variable, before] = undo_.back();
    if (before) {
      bound_[variable] = std::move(before);
    } else {
      bound_.erase(variable);
    }
    undo_.pop_back();
  }
}

bool Unifier::Assign(const TypeRef& from, const TypeRef& to) {
  const std::size_t mark = undo_.size();
  if (CanAssign(from, to)) return true;
  RollBack(mark);
  return false;
}

bool Unifier::AssignAll(const std::vector<TypeRef>& from,
                        const std::vector<TypeRef>& to) {
  const std::size_t mark = undo_.size();
  if (std::equal(from.begin(), from.end(), to.begin(), to.end(),
                 [&](const TypeRef& a, const TypeRef& b) {
                   return CanAssign(a, b);
                 })) {
    return true;
  }
  RollBack(mark);
  return false;
}

bool Unifier::CanAssign(const TypeRef& a, const TypeRef& b) {
  if (!Step()) return false;
  if (nesting_ >= kMaxNesting) {
    steps_ = kMaxSteps;
    return false;
  }
  ++nesting_;
  const bool can = CanAssignKinds(a, b);
  --nesting_;
  return can;
}

bool Unifier::CanAssignKinds(const TypeRef& a, const TypeRef& b) {
  if (b->kind == TypeKind::kParam) {
    const auto [valid, had_type] = Substitute(a, b);
    if (valid) return true;
    if (had_type) return false;
  }
  if (a->kind == TypeKind::kParam) return Substitute(b, a).first;
  if (IsDynOrError(*a) || IsDynOrError(*b)) return true;
  if (a->kind == TypeKind::kNull) return IsNullable(*b);
  if (b->kind == TypeKind::kNull) return IsNullable(*a);
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case TypeKind::kType:
      return true;
    case TypeKind::kOpaque:
    case TypeKind::kList:
    case TypeKind::kMap:
      return a->name == b->name &&
             std::equal(a->params.begin(), a->params.end(), b->params.begin(),
                        b->params.end(),
                        [&](const TypeRef& x, const TypeRef& y) {
                          return CanAssign(x, y);
                        });
    default:
      return a->name == b->name;
  }
}

std::pair<bool, bool> Unifier::Substitute(const TypeRef& type,
                                          const TypeRef& variable) {
  if (SameType(*type, *variable)) return {true, true};
  if (const TypeRef* found = Find(*variable)) {
    const TypeRef before = *found;
    if (SameType(*type, *before)) return {true, true};
    if (!CanAssign(type, before)) return {false, true};
    const TypeRef general = MoreGeneral(type, before);
    if (!OccursIn(*variable, general)) Bind(variable->name, general);
    return {true, true};
  }
  if (OccursIn(*variable, type)) return {false, false};
  Bind(variable->name, type);
  return {true, false};
}

bool Unifier::OccursIn(const Type& variable, const TypeRef& type) {
  if (!Step()) return true;
  if (SameType(variable, *type)) return true;
  if (nesting_ >= kMaxNesting) {
    steps_ = kMaxSteps;
    return true;
  }
  ++nesting_;
  bool occurs = false;
  if (const TypeRef* found = Find(*type)) {
    occurs = OccursIn(variable, *found);
  } else {
    occurs = std::any_of(
        type->params.begin(), type->params.end(),
        [&](const TypeRef& param) { return OccursIn(variable, param); });
  }
  --nesting_;
  return occurs;
}

TypeRef Unifier::Resolve(const TypeRef& type, bool free_to_dyn) {
  int budget = kMaxTypeSize;
  return ResolveWithin(type, free_to_dyn, budget);
}

TypeRef Unifier::ResolveWithin(const TypeRef& type, bool free_to_dyn,
                               int& budget) {
  if (--budget < 0) {
    steps_ = kMaxSteps;
    return SimpleType(TypeKind::kError);
  }
  if (const TypeRef* found = Find(*type)) {
    return ResolveWithin(TypeRef(*found), free_to_dyn, budget);
  }
  if (type->kind == TypeKind::kParam) {
    return free_to_dyn ? SimpleType(TypeKind::kDyn) : type;
  }
  if (type->params.empty()) return type;
  Type resolved;
  resolved.kind = type->kind;
  resolved.name = type->name;
  for (const TypeRef& param : type->params) {
    resolved.params.push_back(ResolveWithin(param, free_to_dyn, budget));
    resolved.size = std::min(resolved.size + resolved.params.back()->size,
                             kMaxTypeSize + 1);
  }
  return std::make_shared<const Type>(std::move(resolved));
}

std::vector<TypeRef> Unifier::Instantiate(const std::vector<TypeRef>& types) {
  std::map<std::string, TypeRef> fresh;
  const std::function<TypeRef(const TypeRef&)> instantiate =
      [&](const TypeRef& type) -> TypeRef {
    if (type->kind == TypeKind::kParam) {
      TypeRef& variable = fresh[type->name];
      if (!variable) variable = NewVariable();
      return variable;
    }
    if (type->params.empty()) return type;
    auto made = std::make_shared<Type>(*type);
    for (TypeRef& param : made->params) param = instantiate(param);
    return made;
  };
  std::vector<TypeRef> made;
  for (const TypeRef& type : types) made.push_back(instantiate(type));
  return made;
}

}  // namespace devmgr::cel
