// SPDX-License-Identifier: Apache-2.0
#include "cel/environment.h"

#include <algorithm>
#include <array>
#include <utility>

namespace devmgr::cel {

std::vector<std::string> Environment::CandidateNames(
    std::string_view name) const {
  if (!name.empty() && name.front() == '.') {
    return {std::string(name.substr(1))};
  }
  std::vector<std::string> names;
  std::string_view space = container;
  while (!space.empty()) {
    names.push_back(std::string(space) + "." + std::string(name));
    const std::size_t dot = space.rfind('.');
    space = dot == std::string_view::npos ? "" : space.substr(0, dot);
  }
  names.emplace_back(name);
  return names;
}

std::optional<TypeRef> FindTypeName(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, TypeKind>, 10> kSimple = {{
      {"bool", TypeKind::kBool},
      {"int", TypeKind::kInt},
      {"uint", TypeKind::kUint},
      {"double", TypeKind::kDouble},
      {"string", TypeKind::kString},
      {"bytes", TypeKind::kBytes},
      {"null_type", TypeKind::kNull},
      {"dyn", TypeKind::kDyn},
      {"google.protobuf.Duration", TypeKind::kDuration},
      {"google.protobuf.Timestamp", TypeKind::kTimestamp},
  }};
  for (const auto& [known, kind] : kSimple) {
    if (known == name) return SimpleType(kind);
  }
  const auto dyn = [] { return SimpleType(TypeKind::kDyn); };
  if (name == "list") return ListType(dyn());
  if (name == "map") return MapType(dyn(), dyn());
  if (name == "type") return TypeType(dyn());
  if (name == kOptionalTypeName) return OptionalType(dyn());
  if (name == kQuantityTypeName || name == kSemverTypeName) {
    return ObjectType(std::string(name));
  }
  return std::nullopt;
}

}  // namespace devmgr::cel
