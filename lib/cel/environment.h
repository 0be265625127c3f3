// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/function.h"
#include "cel/parser.h"
#include "cel/type.h"

namespace devmgr::cel {

/// The names that an expression may use. It must not change once an expression
/// was checked with it.
struct Environment {
  ParseOptions parse;
  /// A namespace. A name is looked up in it first, then in the namespaces
  /// around it.
  std::string container;
  std::map<std::string, TypeRef, std::less<>> variables;
  /// The fields of each type of the kind kObject, by the name of the type.
  std::map<std::string, std::map<std::string, TypeRef, std::less<>>,
           std::less<>>
      fields;
  /// Whether all elements of a list literal, and all keys and all values of a
  /// map literal, must have one type. Kubernetes demands it.
  bool homogeneous_literals = true;
  const Library* library = &KubernetesLibrary();

  /// The full names that `name` may stand for, in the order in which they are
  /// tried: in the container, then in the namespaces around it. A name that
  /// begins with a dot stands for itself only.
  std::vector<std::string> CandidateNames(std::string_view name) const;
};

/// The type that is called `name`, as `int` or `google.protobuf.Duration`.
std::optional<TypeRef> FindTypeName(std::string_view name);

}  // namespace devmgr::cel
