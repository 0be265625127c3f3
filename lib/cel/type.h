// SPDX-License-Identifier: Apache-2.0
//
// Types as the checker sees them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cel {

enum class TypeKind {
  kError,  ///< Of an expression that is wrong; fits everything.
  kDyn,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kList,
  kMap,
  kType,
  kOpaque,  ///< `optional_type`, and what libraries bring: by `name`.
  kObject,  ///< Has fields; by `name`.
  kParam,   ///< A type variable; by `name`.
};

struct Type;
/// Immutable and shared. Never null.
using TypeRef = std::shared_ptr<const Type>;

struct Type {
  TypeKind kind = TypeKind::kError;
  std::string name;
  std::vector<TypeRef> params;
  /// Types in the tree of it, itself included; what is larger than
  /// kMaxTypeSize is not counted further.
  int size = 1;
};

constexpr int kMaxTypeSize = 1000;

/// A type without parameters.
TypeRef SimpleType(TypeKind kind);
TypeRef ListType(TypeRef element);
TypeRef MapType(TypeRef key, TypeRef value);
TypeRef TypeType(TypeRef of);
TypeRef OptionalType(TypeRef of);
TypeRef OpaqueType(std::string name, std::vector<TypeRef> params = {});
TypeRef ObjectType(std::string name);
TypeRef ParamType(std::string name);

constexpr std::string_view kOptionalTypeName = "optional_type";
constexpr std::string_view kQuantityTypeName = "kubernetes.Quantity";
constexpr std::string_view kSemverTypeName = "kubernetes.Semver";

bool IsDyn(const Type& type);
bool IsOptional(const Type& type);
/// Same kind, name and parameters.
bool SameType(const Type& a, const Type& b);

/// As messages show it, and as `string(type(x))` would: `list(int)`.
std::string Describe(const Type& type);
/// The name of the type itself, without parameters: `list`.
std::string TypeName(const Type& type);

/// Reads a type as the tables of functions write it: `map(string, A)`. A single
/// capital letter is a variable. `text` is ours, never input.
TypeRef ParseType(std::string_view text);

}  // namespace devmgr::cel
