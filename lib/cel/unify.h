// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cel/type.h"

namespace devmgr::cel {

/// Infers the types that type variables stand for while an expression is
/// checked. The rules are those of cel-go, so that it accepts the same
/// expressions.
class Unifier {
 public:
  TypeRef NewVariable();

  /// Whether a value of type `from` may be used where type `to` is expected. If
  /// so, type variables are bound accordingly; if not, no binding changes.
  bool Assign(const TypeRef& from, const TypeRef& to);
  /// Assign() for each pair of two lists. If one pair does not fit, no binding
  /// changes.
  bool AssignAll(const std::vector<TypeRef>& from,
                 const std::vector<TypeRef>& to);

  /// `type` with its bound variables replaced by their types. Unbound variables
  /// become dyn if `free_to_dyn`.
  TypeRef Resolve(const TypeRef& type, bool free_to_dyn);

  /// `types`, those of one overload, with new variables in place of the
  /// overload's own.
  std::vector<TypeRef> Instantiate(const std::vector<TypeRef>& types);

  /// Whether checking was given up, since types were too large or took too long
  /// to match. The results since then are worthless.
  bool IsOver() const { return steps_ >= kMaxSteps; }

 private:
  static constexpr int kMaxSteps = 1'000'000;
  static constexpr int kMaxNesting = 1500;

  bool CanAssign(const TypeRef& a, const TypeRef& b);
  bool CanAssignKinds(const TypeRef& a, const TypeRef& b);
  /// First: whether `variable` may stand for `type`. Second: whether it was
  /// bound before.
  std::pair<bool, bool> Substitute(const TypeRef& type,
                                   const TypeRef& variable);
  bool OccursIn(const Type& variable, const TypeRef& type);
  const TypeRef* Find(const Type& variable) const;
  void Bind(const std::string& variable, TypeRef type);
  void RollBack(std::size_t mark);
  TypeRef ResolveWithin(const TypeRef& type, bool free_to_dyn, int& budget);
  bool Step() { return ++steps_ < kMaxSteps; }

  std::unordered_map<std::string, TypeRef> bound_;
  std::vector<std::pair<std::string, TypeRef>> undo_;
  int variables_ = 0;
  int steps_ = 0;
  int nesting_ = 0;
};

/// Of two types that fit each other the more general one.
TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b);

}  // namespace devmgr::cel
