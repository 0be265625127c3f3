// SPDX-License-Identifier: Apache-2.0
#include "cel/type.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace devmgr::cel {
namespace {

struct KindName {
  TypeKind kind;
  std::string_view name;   ///< The name of the type in the language.
  std::string_view shown;  ///< The name of the type in messages.
};

constexpr std::array kNames = {
    KindName{TypeKind::kError, "!error!", "!error!"},
    KindName{TypeKind::kDyn, "dyn", "dyn"},
    KindName{TypeKind::kNull, "null_type", "null"},
    KindName{TypeKind::kBool, "bool", "bool"},
    KindName{TypeKind::kInt, "int", "int"},
    KindName{TypeKind::kUint, "uint", "uint"},
    KindName{TypeKind::kDouble, "double", "double"},
    KindName{TypeKind::kString, "string", "string"},
    KindName{TypeKind::kBytes, "bytes", "bytes"},
    KindName{TypeKind::kDuration, "google.protobuf.Duration", "duration"},
    KindName{TypeKind::kTimestamp, "google.protobuf.Timestamp", "timestamp"},
    KindName{TypeKind::kList, "list", "list"},
    KindName{TypeKind::kMap, "map", "map"},
    KindName{TypeKind::kType, "type", "type"},
};

const KindName* FindName(TypeKind kind) {
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(),
                   [&](const KindName& name) { return name.kind == kind; });
  return found == kNames.end() ? nullptr : found;
}

TypeRef Make(TypeKind kind, std::string name, std::vector<TypeRef> params) {
  auto type = std::make_shared<Type>();
  type->kind = kind;
  type->name = std::move(name);
  for (const TypeRef& param : params) {
    type->size = std::min(type->size + param->size, kMaxTypeSize + 1);
  }
  type->params = std::move(params);
  return type;
}

/// Reads a type, by recursive descent, from one of our own tables.
class TypeText {
 public:
  explicit TypeText(std::string_view text) : rest_(text) {}

  TypeRef Read() {
    SkipSpace();
    std::size_t size = 0;
    while (size < rest_.size() &&
           std::string_view("(),").find(rest_[size]) == std::string_view::npos)
      ++size;
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return Named(name, Params());
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::vector<TypeRef> Params() {
    std::vector<TypeRef> params;
    if (rest_.empty() || rest_.front() != '(') return params;
    do {
      rest_.remove_prefix(1);
      params.push_back(Read());
    } while (!rest_.empty() && rest_.front() == ',');
    assert(!rest_.empty() && rest_.front() == ')');
    rest_.remove_prefix(1);
    return params;
  }

  static TypeRef Named(std::string_view name, std::vector<TypeRef> params) {
    if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') {
      return ParamType(std::string(name));
    }
    if (name == "optional") return OptionalType(params.at(0));
    if (name == "quantity") return ObjectType(std::string(kQuantityTypeName));
    if (name == "semver") return ObjectType(std::string(kSemverTypeName));
    for (const KindName& known : kNames) {
      if (name == known.name || name == known.shown) {
        return Make(known.kind, "", std::move(params));
      }
    }
    assert(false && "a type of our own tables that is not known");
    return SimpleType(TypeKind::kError);
  }

  std::string_view rest_;
};

}  // namespace

TypeRef SimpleType(TypeKind kind) {
  static const std::vector<TypeRef> types = [] {
    std::vector<TypeRef> made;
    for (int i = 0; i <= static_cast<int>(TypeKind::kParam); ++i) {
      made.push_back(Make(static_cast<TypeKind>(i), "", {}));
    }
    return made;
  }();
  return types[static_cast<std::size_t>(kind)];
}
TypeRef ListType(TypeRef element) {
  return Make(TypeKind::kList, "", {std::move(element)});
}
TypeRef MapType(TypeRef key, TypeRef value) {
  return Make(TypeKind::kMap, "", {std::move(key), std::move(value)});
}
TypeRef TypeType(TypeRef of) {
  return Make(TypeKind::kType, "", {std::move(of)});
}
TypeRef OptionalType(TypeRef of) {
  return OpaqueType(std::string(kOptionalTypeName), {std::move(of)});
}
TypeRef OpaqueType(std::string name, std::vector<TypeRef> params) {
  return Make(TypeKind::kOpaque, std::move(name), std::move(params));
}
TypeRef ObjectType(std::string name) {
  return Make(TypeKind::kObject, std::move(name), {});
}
TypeRef ParamType(std::string name) {
  return Make(TypeKind::kParam, std::move(name), {});
}

bool IsDyn(const Type& type) { return type.kind == TypeKind::kDyn; }
bool IsOptional(const Type& type) {
  return type.kind == TypeKind::kOpaque && type.name == kOptionalTypeName;
}

bool SameType(const Type& a, const Type& b) {
  return &a == &b ||
         (a.kind == b.kind && a.size == b.size && a.name == b.name &&
          std::equal(a.params.begin(), a.params.end(), b.params.begin(),
                     b.params.end(), [](const TypeRef& x, const TypeRef& y) {
                       return SameType(*x, *y);
                     }));
}

std::string Describe(const Type& type) {
  const KindName* known = FindName(type.kind);
  std::string text = known != nullptr ? std::string(known->shown) : type.name;
  for (std::size_t i = 0; i < type.params.size(); ++i) {
    text += i == 0 ? "(" : ", ";
    text += Describe(*type.params[i]);
  }
  if (!type.params.empty()) text += ")";
  return text;
}

std::string TypeName(const Type& type) {
  const KindName* known = FindName(type.kind);
  return known != nullptr ? std::string(known->name) : type.name;
}

TypeRef ParseType(std::string_view text) { return TypeText(text).Read(); }

}  // namespace devmgr::cel
