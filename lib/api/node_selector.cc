// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
constexpr std::string_view kNameField = "metadata.name";

/// How many values an operator of labels takes.
void CheckValueCount(const Field& field,
                     const NodeSelectorRequirement& requirement) {
  const Field values = field["values"];
  const std::size_t count = requirement.values.size();
  if (requirement.op == "In" || requirement.op == "NotIn") {
    if (count == 0) values.Error("is required with In and NotIn");
  } else if (requirement.op == "Exists" || requirement.op == "DoesNotExist") {
    if (count != 0) {
      values.Error("must not be given with Exists and DoesNotExist");
    }
  } else if (requirement.op == "Gt" || requirement.op == "Lt") {
    if (count != 1) {
      values.Error(
          fmt::format("has {} entries; Gt and Lt take exactly one", count));
    }
  }
}

NodeSelectorRequirement DecodeRequirement(
    const Field& field, std::string (*check)(std::string_view)) {
  NodeSelectorRequirement requirement;
  requirement.key = RequiredName(field["key"], nullptr);
  for (const Field& item : field["values"].Items()) {
    requirement.values.push_back(item.StringOr(""));
    if (item.IsString()) item.Check(check(requirement.values.back()));
  }
  return requirement;
}

NodeSelectorRequirement DecodeLabelRequirement(const Field& field) {
  NodeSelectorRequirement requirement =
      DecodeRequirement(field, CheckLabelValue);
  if (!requirement.key.empty()) {
    field["key"].Check(CheckQualifiedName(requirement.key));
  }
  requirement.op = RequiredWord(
      field["operator"], {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
  CheckValueCount(field, requirement);
  return requirement;
}

NodeSelectorRequirement DecodeFieldRequirement(const Field& field) {
  NodeSelectorRequirement requirement =
      DecodeRequirement(field, CheckSubdomain);
  if (!requirement.key.empty() && requirement.key != kNameField) {
    field["key"].Error(
        fmt::format("{} is not a field of nodes that can be "
                    "selected by; metadata.name is",
                    Quoted(requirement.key)));
  }
  requirement.op = RequiredWord(field["operator"], {"In", "NotIn"});
  if (requirement.values.size() != 1) {
    field["values"].Error(
        fmt::format("has {} entries; a field takes exactly one",
                    requirement.values.size()));
  }
  return requirement;
}

NodeSelectorTerm DecodeTerm(const Field& field) {
  NodeSelectorTerm term;
  for (const Field& item : field["matchExpressions"].Items()) {
    if (item.RequireMap()) {
      term.match_expressions.push_back(DecodeLabelRequirement(item));
    }
  }
  for (const Field& item : field["matchFields"].Items()) {
    if (item.RequireMap()) {
      term.match_fields.push_back(DecodeFieldRequirement(item));
    }
  }
  return term;
}

/// What `key` has to be by one of the `requirements`, all of which hold; empty
/// when several values will do.
std::string OnlyValue(const Field& requirements, std::string_view key) {
  for (const Field& requirement : requirements.Items()) {
    const std::vector<Field> values = requirement["values"].Items();
    if (requirement["key"].StringOr("") == key &&
        requirement["operator"].StringOr("") == "In" && values.size() == 1) {
      return values.front().StringOr("");
    }
  }
  return "";
}

}  // namespace

std::string OnlyNodeOf(const Field& selector) {
  const std::vector<Field> terms = selector["nodeSelectorTerms"].Items();
  if (terms.size() != 1) return "";
  const std::string name = OnlyValue(terms.front()["matchFields"], kNameField);
  if (!name.empty()) return name;
  return OnlyValue(terms.front()["matchExpressions"], kHostnameLabel);
}

NodeSelector DecodeNodeSelector(const Field& field, bool exactly_one) {
  NodeSelector selector;
  if (!field.IsMap()) return selector;
  const Field terms = field["nodeSelectorTerms"];
  std::vector<NodeSelectorTerm> decoded;
  for (const Field& item : terms.Items()) {
    if (item.RequireMap()) decoded.push_back(DecodeTerm(item));
  }
  selector.terms = std::move(decoded);
  const bool is_list =
      !terms.IsPresent() || terms.value()->kind == Value::Kind::kList;
  if (!is_list) return selector;  // Reported.
  const std::size_t count = terms.IsPresent() ? terms.value()->items.size() : 0;
  if (exactly_one && count != 1) {
    terms.Error(fmt::format("has {} entries; exactly one is required", count));
  } else if (count == 0) {
    terms.Error("is required: without terms no node is selected");
  }
  return selector;
}

}  // namespace devmgr::api
