// SPDX-License-Identifier: Apache-2.0
#include "source/api/node_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/parser.h"
#include "api/quantity.h"
#include "api/value.h"
#include "source/api/json_tree.h"

namespace devmgr::apiserver {
namespace {

constexpr char kFeatures[] = "declaredFeatures";
constexpr const char* kAmounts[] = {"capacity", "allocatable"};
/// Of all features that nodes declare, those that are about devices.
constexpr const char* kDeviceFeatures[] = {"DRANodeAllocatableResources",
                                           "DRAOptionalNodeOperations"};

}  // namespace

std::string DescribeField(const NodeField& field) {
  return fmt::format("status.{}[{}]", field.first, field.second);
}

std::optional<std::string> NodeStatusView::Find(const NodeField& field) const {
  const auto found = fields.find(field);
  if (found == fields.end()) return std::nullopt;
  return found->second;
}

std::optional<NodeStatusView> ParseNodeStatus(std::string_view text) {
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/true);
  if (parsed.documents.size() != 1) return std::nullopt;
  const api::Value& root = *parsed.documents.front();
  const api::Value* kind = root.Find("kind");
  const api::Value* metadata = root.Find("metadata");
  if (kind == nullptr || kind->text != "Node" || metadata == nullptr) {
    return std::nullopt;
  }
  const api::Value* uid = metadata->Find("uid");
  if (uid == nullptr || uid->text.empty()) return std::nullopt;
  NodeStatusView node;
  node.uid = uid->text;
  const api::Value* status = root.Find("status");
  if (status == nullptr) return node;
  for (const char* group : kAmounts) {
    const api::Value* amounts = status->Find(group);
    if (amounts == nullptr) continue;
    for (const auto& [name, member] : amounts->members) {
      node.fields[{group, name}] = member.value->text;
    }
  }
  if (const api::Value* features = status->Find(kFeatures)) {
    for (const api::ValuePtr& feature : features->items) {
      node.fields[{kFeatures, feature->text}] = "true";
    }
  }
  return node;
}

WantedFields FieldsOf(const NodeDeviceStatus& status) {
  WantedFields fields;
  for (const auto& [name, amounts] : status.resources) {
    std::optional<std::string> capacity, allocatable;
    if (amounts) {
      capacity = std::to_string(amounts->capacity);
      allocatable = std::to_string(amounts->allocatable);
    }
    fields[{kAmounts[0], name.value}] = std::move(capacity);
    fields[{kAmounts[1], name.value}] = std::move(allocatable);
  }
  for (const char* feature : kDeviceFeatures) {
    const auto& declared = status.declared_features;
    const bool has =
        std::find(declared.begin(), declared.end(), feature) != declared.end();
    fields[{kFeatures, feature}] =
        has ? std::optional<std::string>("true") : std::nullopt;
  }
  return fields;
}

bool IsSameValue(const std::optional<std::string>& one,
                 const std::optional<std::string>& other) {
  if (one == other) return true;
  if (!one || !other) return false;
  // A server writes 1000 as 1k.
  const auto a = api::ParseQuantity(*one);
  const auto b = api::ParseQuantity(*other);
  return a.ok() && b.ok() && api::Compare(*a, *b) == 0;
}

WantedFields ChangesOf(const NodeStatusView& node, const WantedFields& wanted) {
  WantedFields changes;
  for (const auto& [field, value] : wanted) {
    if (!IsSameValue(node.Find(field), value)) changes[field] = value;
  }
  return changes;
}

std::string NodeStatusPatch(const NodeStatusView& node,
                            const WantedFields& changes) {
  JsonMap status;
  for (const char* group : kAmounts) {
    JsonMap amounts;
    for (const auto& [field, value] : changes) {
      if (field.first != group) continue;
      amounts.Put(field.second, value ? JsonString(*value) : JsonNull());
    }
    status.PutPart(group, amounts);
  }
  // The list is replaced as a whole: what others declare stays in it.
  std::set<std::string> features;
  for (const auto& [field, value] : node.fields) {
    if (field.first == kFeatures) features.insert(field.second);
  }
  bool has_others = false;
  for (const auto& [field, value] : changes) {
    if (field.first != kFeatures) continue;
    has_others = true;
    if (value) {
      features.insert(field.second);
    } else {
      features.erase(field.second);
    }
  }
  if (has_others) {
    status.Put(kFeatures, JsonStrings({features.begin(), features.end()}));
  }
  JsonMap metadata;
  metadata.Put("uid", node.uid);
  JsonMap patch;
  patch.Put("metadata", metadata.value()).Put("status", status.value());
  return patch.Text();
}

}  // namespace devmgr::apiserver
