// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/numbers.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "api/names.h"
#include "api/pod.h"
#include "api/quote.h"
#include "api/value.h"

namespace devmgr::api {
namespace {

ResourceRequirements DecodeResources(const Field& field) {
  ResourceRequirements resources;
  if (!field.IsMap()) return resources;
  resources.limits = field["limits"].QuantityMap();
  resources.requests = field["requests"].QuantityMap();
  for (const Field& item : field["claims"].Items()) {
    if (!item.RequireMap()) continue;
    resources.claims.push_back(
        {item["name"].StringOr(""), item["request"].StringOr("")});
  }
  return resources;
}

// What only the status of a pod is made of: a mistake in it says nothing of the
// pod's devices.

std::string LooseText(const Value* value) {
  const bool is_text = value != nullptr && value->kind == Value::Kind::kString;
  return is_text ? value->text : "";
}

std::vector<const Value*> LooseMaps(const Value* value) {
  std::vector<const Value*> maps;
  if (value == nullptr) return maps;
  for (const ValuePtr& item : value->items) {
    if (item->kind == Value::Kind::kMap) maps.push_back(item.get());
  }
  return maps;
}

/// The status of the conditions that `gates` name.
std::map<std::string, std::string> DecodeGateConditions(
    const Value* conditions, const std::vector<std::string>& gates) {
  std::map<std::string, std::string> found;
  if (gates.empty()) return found;
  for (const Value* item : LooseMaps(conditions)) {
    const std::string type = LooseText(item->Find("type"));
    if (std::find(gates.begin(), gates.end(), type) == gates.end()) continue;
    found[type] = LooseText(item->Find("status"));
  }
  return found;
}

std::int64_t DecodeGeneration(const Value* value) {
  std::int64_t number = 0;
  if (value == nullptr || value->kind != Value::Kind::kInteger ||
      !absl::SimpleAtoi(value->text, &number)) {
    return 0;
  }
  return std::max<std::int64_t>(number, 0);
}

std::vector<Container> DecodeContainers(const Field& field, bool init) {
  std::vector<Container> containers;
  for (const Field& item : field.Items()) {
    if (!item.RequireMap()) continue;
    Container container;
    container.name = item["name"].StringOr("");
    container.resources = DecodeResources(item["resources"]);
    const std::string policy = item["restartPolicy"].StringOr("");
    if (init && policy == "Always") container.restart_policy = policy;
    container.image = LooseText(item["image"].value());
    containers.push_back(std::move(container));
  }
  return containers;
}

/// Ephemeral containers get no devices; only a wish for some is of interest.
void CheckEphemeralContainers(const Field& field,
                              std::vector<PodProblem>& broken) {
  for (const Field& item : field.Items()) {
    if (!item.RequireMap()) continue;
    const Field resources = item["resources"];
    const ResourceRequirements wanted = DecodeResources(resources);
    if (!wanted.claims.empty()) {
      broken.push_back({resources["claims"].path(),
                        "ephemeral containers cannot use resource claims"});
    }
    for (const auto* list : {&wanted.limits, &wanted.requests}) {
      for (const auto& [name, quantity] : *list) {
        if (!CanBeDraExtendedResource(name)) continue;
        broken.push_back({resources.path(),
                          fmt::format("ephemeral containers cannot ask for {}",
                                      Quoted(name))});
      }
    }
  }
}

/// A claim of a pod; up to Kubernetes 1.30 its sources stood under `source`.
PodResourceClaim DecodePodClaim(const Field& item,
                                std::vector<PodProblem>& broken) {
  PodResourceClaim claim;
  claim.name = item["name"].StringOr("");
  claim.resource_claim_name = item["resourceClaimName"].AsString();
  claim.resource_claim_template_name =
      item["resourceClaimTemplateName"].AsString();
  const Field source = item["source"];
  if (!source.IsMap()) return claim;
  const std::optional<std::string> name =
      source["resourceClaimName"].AsString();
  const std::optional<std::string> template_name =
      source["resourceClaimTemplateName"].AsString();
  if ((name || template_name) &&
      (claim.resource_claim_name || claim.resource_claim_template_name)) {
    broken.push_back({source.path(),
                      "a source is given here and in the entry itself; one "
                      "place is allowed"});
    return claim;
  }
  if (name) claim.resource_claim_name = name;
  if (template_name) claim.resource_claim_template_name = template_name;
  return claim;
}

/// Of two spellings of one field, the one that is there. Both at once cannot
/// be told apart, so that is an error.
Field EitherSpelling(const Field& parent, std::string_view today,
                     std::string_view old) {
  const Field current = parent[today];
  const Field former = parent[old];
  if (!former.IsPresent()) return current;
  if (current.IsPresent()) {
    former.Error(
        fmt::format("'{}' is given as well; use one of the two", today));
    return current;
  }
  return former;
}

/// In today's spelling, or in that of the text of KEP-5004.
PodExtendedResourceClaimStatus DecodeExtendedClaimStatus(const Field& field) {
  PodExtendedResourceClaimStatus status;
  status.resource_claim_name = field["resourceClaimName"].StringOr("");
  const Field mappings =
      EitherSpelling(field, "requestMappings", "requestMapping");
  for (const Field& item : mappings.Items()) {
    if (!item.RequireMap()) continue;
    ContainerExtendedResourceRequest mapping;
    mapping.container_name = item["containerName"].StringOr("");
    mapping.resource_name =
        EitherSpelling(item, "resourceName", "extendedResourceName")
            .StringOr("");
    mapping.request_name = item["requestName"].StringOr("");
    status.request_mappings.push_back(std::move(mapping));
  }
  return status;
}

PodSpec DecodePodSpec(const Field& field, std::vector<PodProblem>& broken) {
  PodSpec spec;
  if (!field.RequireMap()) return spec;
  spec.node_name = field["nodeName"].StringOr("");
  spec.priority = static_cast<std::int32_t>(
      field["priority"]
          .AsInteger(std::numeric_limits<std::int32_t>::min(),
                     std::numeric_limits<std::int32_t>::max())
          .value_or(0));
  if (const Field group = field["schedulingGroup"]; group.IsMap()) {
    spec.pod_group = group["podGroupName"].StringOr("");
  }
  spec.init_containers = DecodeContainers(field["initContainers"], true);
  spec.containers = DecodeContainers(field["containers"], false);
  CheckEphemeralContainers(field["ephemeralContainers"], broken);
  for (const Field& item : field["resourceClaims"].Items()) {
    if (!item.RequireMap()) continue;
    spec.resource_claims.push_back(DecodePodClaim(item, broken));
  }
  const std::string policy = LooseText(field["restartPolicy"].value());
  if (!policy.empty()) spec.restart_policy = policy;
  for (const Value* item : LooseMaps(field["readinessGates"].value())) {
    spec.readiness_gates.push_back(LooseText(item->Find("conditionType")));
  }
  return spec;
}

PodStatus DecodePodStatus(const Field& field,
                          const std::vector<std::string>& gates) {
  PodStatus status;
  if (!field.IsMap()) return status;
  status.phase = field["phase"].StringOr("");
  for (const Field& item : field["resourceClaimStatuses"].Items()) {
    if (!item.RequireMap()) continue;
    status.resource_claim_statuses.push_back(
        {item["name"].StringOr(""), item["resourceClaimName"].AsString()});
  }
  if (const Field extended = field["extendedResourceClaimStatus"];
      extended.IsMap()) {
    status.extended_resource_claim_status = DecodeExtendedClaimStatus(extended);
  }
  status.gate_conditions =
      DecodeGateConditions(field["conditions"].value(), gates);
  return status;
}

}  // namespace

Pod DecodePod(const Field& root, std::vector<PodProblem>& broken) {
  Pod pod;
  pod.metadata = DecodeMeta(root, Scope::kNamespace);
  pod.spec = DecodePodSpec(root["spec"], broken);
  pod.status = DecodePodStatus(root["status"], pod.spec.readiness_gates);
  pod.generation = DecodeGeneration(root["metadata"]["generation"].value());
  return pod;
}

}  // namespace devmgr::api
