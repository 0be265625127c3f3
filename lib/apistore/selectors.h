// SPDX-License-Identifier: Apache-2.0
//
// Field and label selectors: which objects a list or a watch shows.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apistore/resource_type.h"

namespace devmgr::apistore {

/// Terms `field=value`, `field==value`, `field!=value`, joined by commas, with
/// `\` before a comma, an equals sign or a `\` that is part of a value.
class FieldSelector {
 public:
  /// InvalidArgument for what is no selector, and for fields that the type
  /// cannot be selected by.
  static absl::StatusOr<FieldSelector> Parse(std::string_view text,
                                             const ResourceType& type);

  bool Matches(const Json& object) const;
  bool empty() const { return terms_.empty(); }

 private:
  struct Term {
    Json::json_pointer pointer;
    std::string absent;
    std::string value;
    bool equal = true;
  };
  std::vector<Term> terms_;
};

/// The full grammar: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`,
/// `a`, `!a`, `a>1`, `a<1`, joined by commas. An object without the label
/// matches `!=` and `notin`.
class LabelSelector {
 public:
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);

  bool Matches(const Json& object) const;
  bool empty() const { return terms_.empty(); }

  enum class Operator { kIn, kNotIn, kExists, kAbsent, kGreater, kLess };
  struct Term {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;
  };

 private:
  std::vector<Term> terms_;
};

/// Which objects a client may see; null for all.
using Visibility = std::function<bool(const Json& object)>;

/// What a client asks for, and what it may see.
struct Selectors {
  FieldSelector fields;
  LabelSelector labels;
  Visibility visible;

  bool Matches(const Json& object) const {
    return (!visible || visible(object)) && fields.Matches(object) &&
           labels.Matches(object);
  }
  bool empty() const { return !visible && fields.empty() && labels.empty(); }
};

}  // namespace devmgr::apistore
