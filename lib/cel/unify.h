// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cel/type.h"

namespace devmgr::cel {

/// What type variables stand for, found while an expression is checked. The
/// rules are those of cel-go, so that the same expressions pass.
class Unifier {
 public:
  TypeRef NewVariable();

  /// Whether a value of type `from` may stand where `to` is wanted; variables
  /// are bound for it if so, and left alone if not.
  bool Assign(const TypeRef& from, const TypeRef& to);
  /// The same for all of two lists at once.
  bool AssignAll(const std::vector<TypeRef>& from,
                 const std::vector<TypeRef>& to);

  /// `type` with its variables replaced; those that are free become dyn if
  /// `free_to_dyn`.
  TypeRef Resolve(const TypeRef& type, bool free_to_dyn);

  /// `overload`'s types with fresh variables in place of its own.
  std::vector<TypeRef> Instantiate(const std::vector<TypeRef>& types);

  /// Types were too large, or took too long to match: what was said since is
  /// worth nothing.
  bool IsOver() const { return steps_ >= kMaxSteps; }

 private:
  static constexpr int kMaxSteps = 1'000'000;
  static constexpr int kMaxNesting = 1500;

  bool CanAssign(const TypeRef& a, const TypeRef& b);
  bool CanAssignKinds(const TypeRef& a, const TypeRef& b);
  /// Whether `variable` may stand for `type`; and whether it stood for anything
  /// before.
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

/// The one of two types that fit each other which says less.
TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b);

}  // namespace devmgr::cel
