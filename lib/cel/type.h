// SPDX-License-Identifier: Apache-2.0
//
// The types of expressions, as the checker infers them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cel {

enum class TypeKind {
  kError,  ///< Type of an expression with an error. It fits every type, so that
           ///< one error is reported once.
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
  kOpaque,  ///< `optional_type` and types of libraries, told apart by `name`.
  kObject,  ///< A type with fields, by `name`.
  kParam,   ///< A type variable, by `name`.
};

struct Type;
/// Immutable and shared. Never null.
using TypeRef = std::shared_ptr<const Type>;

struct Type {
  TypeKind kind = TypeKind::kError;
  std::string name;
  std::vector<TypeRef> params;
  /// The number of types that this one is composed of, itself included.
  /// Counting stops above kMaxTypeSize.
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
/// Whether both have the same kind, name and parameters.
bool SameType(const Type& a, const Type& b);

/// The type with its parameters, as in messages: `list(int)`.
std::string Describe(const Type& type);
/// The name of the type without its parameters: `list`.
std::string TypeName(const Type& type);

/// Reads a type as the tables of functions write it: `map(string, A)`. A single
/// capital letter is a type variable. `text` comes from our own tables, so that
/// a mistake in it is a bug and not an error.
TypeRef ParseType(std::string_view text);

}  // namespace devmgr::cel
