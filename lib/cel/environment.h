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

/// What an expression may refer to. Immutable once it is used.
struct Environment {
  ParseOptions parse;
  /// Names are looked up in this namespace and those around it first.
  std::string container;
  std::map<std::string, TypeRef, std::less<>> variables;
  /// Fields of the types of kind kObject, by name of the type.
  std::map<std::string, std::map<std::string, TypeRef, std::less<>>,
           std::less<>>
      fields;
  /// Elements of a list literal, keys and values of a map literal must have
  /// one type, as Kubernetes wants it.
  bool homogeneous_literals = true;
  const Library* library = &KubernetesLibrary();

  /// `name` in the container, then in the namespaces around it; in none when it
  /// begins with a dot.
  std::vector<std::string> CandidateNames(std::string_view name) const;
};

/// The type that `name` stands for: `int`, `google.protobuf.Duration`.
std::optional<TypeRef> FindTypeName(std::string_view name);

}  // namespace devmgr::cel
