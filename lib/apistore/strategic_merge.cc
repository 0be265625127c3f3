// SPDX-License-Identifier: Apache-2.0
#include "apistore/strategic_merge.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr::apistore {
namespace {

/// A list that is merged. Without a key its elements are plain values.
struct MergedList {
  std::string_view kind;  ///< Empty: of all kinds.
  std::string_view path;
  std::string_view key;
};

constexpr std::array kMergedLists = {
    MergedList{"", "metadata.ownerReferences", "uid"},
    MergedList{"", "metadata.finalizers", ""},
    MergedList{"Node", "spec.podCIDRs", ""},
    MergedList{"Node", "status.conditions", "type"},
    MergedList{"Node", "status.addresses", "type"},
    MergedList{"Pod", "spec.containers", "name"},
    MergedList{"Pod", "spec.initContainers", "name"},
    MergedList{"Pod", "spec.ephemeralContainers", "name"},
    MergedList{"Pod", "spec.containers[].env", "name"},
    MergedList{"Pod", "spec.containers[].ports", "containerPort"},
    MergedList{"Pod", "spec.containers[].volumeMounts", "mountPath"},
    MergedList{"Pod", "spec.containers[].volumeDevices", "devicePath"},
    MergedList{"Pod", "spec.initContainers[].env", "name"},
    MergedList{"Pod", "spec.initContainers[].ports", "containerPort"},
    MergedList{"Pod", "spec.initContainers[].volumeMounts", "mountPath"},
    MergedList{"Pod", "spec.initContainers[].volumeDevices", "devicePath"},
    MergedList{"Pod", "spec.volumes", "name"},
    MergedList{"Pod", "spec.imagePullSecrets", "name"},
    MergedList{"Pod", "spec.hostAliases", "ip"},
    MergedList{"Pod", "spec.resourceClaims", "name"},
    MergedList{"Pod", "spec.schedulingGates", "name"},
    MergedList{"Pod", "spec.topologySpreadConstraints", "topologyKey"},
    MergedList{"Pod", "status.conditions", "type"},
    MergedList{"Pod", "status.podIPs", "ip"},
    MergedList{"Pod", "status.hostIPs", "ip"},
    MergedList{"Pod", "status.resourceClaimStatuses", "name"},
    MergedList{"ResourceClaim", "status.reservedFor", "uid"},
};

const MergedList* FindList(std::string_view kind, std::string_view path) {
  for (const MergedList& list : kMergedLists) {
    if (list.path == path && (list.kind.empty() || list.kind == kind)) {
      return &list;
    }
  }
  return nullptr;
}

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDeleteValues = "$deleteFromPrimitiveList/";

std::string DirectiveOf(const Json& patch) {
  const auto it = patch.find(kDirective);
  return it != patch.end() && it->is_string() ? it->get<std::string>() : "";
}

/// What follows `prefix` in `key`, or nothing.
std::string_view After(std::string_view key, std::string_view prefix) {
  return key.substr(0, prefix.size()) == prefix ? key.substr(prefix.size())
                                                : std::string_view();
}

class Merger {
 public:
  explicit Merger(std::string_view kind) : kind_(kind) {}

  /// NOLINTNEXTLINE(misc-no-recursion): the depth of `patch` is bounded.
  absl::Status Object(Json& target, const Json& patch, const std::string& path);

 private:
  absl::Status Field(Json& target, const std::string& key, const Json& value,
                     const std::string& path);
  absl::Status List(Json& target, const Json& patch, const MergedList& list,
                    const std::string& path);
  absl::Status Element(Json& target, const Json& element,
                       const MergedList& list, const std::string& path);
  absl::Status Orders(Json& target, const Json& patch, const std::string& path);

  std::string_view kind_;
};

void MergeValues(Json& target, const Json& patch) {
  for (const Json& value : patch) {
    if (std::find(target.begin(), target.end(), value) == target.end()) {
      target.push_back(value);
    }
  }
}

void DeleteValues(Json& target, const Json& values) {
  Json kept = Json::array();
  for (Json& value : target) {
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      kept.push_back(std::move(value));
    }
  }
  target = std::move(kept);
}

/// Fields that `$retainKeys` does not list go.
void RetainKeys(Json& target, const Json& keys) {
  Json kept = Json::object();
  for (auto& [key, value] : target.items()) {
    if (std::find(keys.begin(), keys.end(), Json(key)) != keys.end()) {
      kept[key] = std::move(value);
    }
  }
  target = std::move(kept);
}

/// Where `order` puts `element`; behind all others when it lacks it.
std::size_t Rank(const Json& order, const Json& element, std::string_view key) {
  const auto same = [&](const Json& other) {
    if (key.empty()) return other == element;
    return other.is_object() && element.is_object() && other.contains(key) &&
           element.contains(key) && *other.find(key) == *element.find(key);
  };
  return static_cast<std::size_t>(
      std::find_if(order.begin(), order.end(), same) - order.begin());
}

void Reorder(Json& list, const Json& order, std::string_view key) {
  std::vector<std::pair<std::size_t, Json>> ranked;
  for (Json& element : list) {
    const std::size_t rank = Rank(order, element, key);
    ranked.emplace_back(rank, std::move(element));
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  list = Json::array();
  for (auto& [rank, element] : ranked) list.push_back(std::move(element));
}

absl::Status Merger::Object(Json& target, const Json& patch,
                            const std::string& path) {
  if (!target.is_object()) target = Json::object();
  const std::string directive = DirectiveOf(patch);
  if (directive == "replace") {
    target = patch;
    target.erase(std::string(kDirective));
    return absl::OkStatus();
  }
  if (directive == "delete") {
    target = Json::object();
    return absl::OkStatus();
  }
  if (patch.contains(kDirective) && directive != "merge") {
    return InvalidArgumentError("unknown patch type found: {}",
                                patch.find(kDirective)->dump());
  }
  if (const auto keys = patch.find(kRetainKeys); keys != patch.end()) {
    if (!keys->is_array()) {
      return InvalidArgumentError("$retainKeys of '{}' is no list", path);
    }
    RetainKeys(target, *keys);
  }
  for (const auto& [key, value] : patch.items()) {
    DEVMGR_RETURN_IF_ERROR(Field(target, key, value, path));
  }
  return Orders(target, patch, path);
}

absl::Status Merger::Field(Json& target, const std::string& key,
                           const Json& value, const std::string& path) {
  if (const std::string_view field = After(key, kDeleteValues);
      !field.empty()) {
    const auto it = target.find(field);
    if (!value.is_array()) {
      return InvalidArgumentError("'{}' is no list", key);
    }
    if (it != target.end() && it->is_array()) DeleteValues(*it, value);
    return absl::OkStatus();
  }
  if (!key.empty() && key.front() == '$') return absl::OkStatus();
  if (value.is_null()) {
    target.erase(key);
    return absl::OkStatus();
  }
  const std::string inner = path.empty() ? key : path + "." + key;
  if (value.is_object()) return Object(target[key], value, inner);
  const MergedList* list = FindList(kind_, inner);
  if (value.is_array() && list != nullptr) {
    return List(target[key], value, *list, inner);
  }
  target[key] = value;
  return absl::OkStatus();
}

absl::Status Merger::List(Json& target, const Json& patch,
                          const MergedList& list, const std::string& path) {
  if (!target.is_array()) target = Json::array();
  if (list.key.empty()) {
    MergeValues(target, patch);
    return absl::OkStatus();
  }
  const bool replace =
      std::any_of(patch.begin(), patch.end(), [](const Json& element) {
        return element.is_object() && DirectiveOf(element) == "replace" &&
               element.size() == 1;
      });
  if (replace) target = Json::array();
  for (const Json& element : patch) {
    if (!element.is_object()) {
      return InvalidArgumentError("an element of '{}' is no object", path);
    }
    if (DirectiveOf(element) == "replace" && element.size() == 1) continue;
    DEVMGR_RETURN_IF_ERROR(Element(target, element, list, path));
  }
  return absl::OkStatus();
}

absl::Status Merger::Element(Json& target, const Json& element,
                             const MergedList& list, const std::string& path) {
  const auto key = element.find(list.key);
  if (key == element.end()) {
    return InvalidArgumentError(
        "map: {} does not contain declared merge key: {}",
        element.dump(-1, ' ', false, Json::error_handler_t::replace), list.key);
  }
  const auto same = [&](const Json& other) {
    const auto it = other.is_object() ? other.find(list.key) : other.end();
    return it != other.end() && *it == *key;
  };
  const auto found = std::find_if(target.begin(), target.end(), same);
  if (DirectiveOf(element) == "delete") {
    if (found != target.end()) target.erase(found);
    return absl::OkStatus();
  }
  if (found != target.end()) return Object(*found, element, path + "[]");
  Json added = Json::object();
  DEVMGR_RETURN_IF_ERROR(Object(added, element, path + "[]"));
  target.push_back(std::move(added));
  return absl::OkStatus();
}

absl::Status Merger::Orders(Json& target, const Json& patch,
                            const std::string& path) {
  for (const auto& [key, order] : patch.items()) {
    const std::string field(After(key, kOrder));
    if (field.empty()) continue;
    if (!order.is_array()) return InvalidArgumentError("'{}' is no list", key);
    const MergedList* list = FindList(
        kind_, path.empty() ? field : fmt::format("{}.{}", path, field));
    const auto it = target.find(field);
    if (list != nullptr && it != target.end() && it->is_array()) {
      Reorder(*it, order, list->key);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StrategicMerge(std::string_view kind, Json& target,
                            const Json& patch) {
  if (!patch.is_object()) {
    return InvalidArgumentError("a strategic merge patch is an object");
  }
  return Merger(kind).Object(target, patch, "");
}

}  // namespace devmgr::apistore
