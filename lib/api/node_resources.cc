// SPDX-License-Identifier: Apache-2.0
//
// What devices take of their node's own resources.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

bool IsNodeAllocatable(std::string_view name) {
  return name == "cpu" || name == "memory" ||
         (name.starts_with("hugepages-") && CheckQualifiedName(name).empty());
}

std::optional<Quantity> DecodeMultiplier(const Field& field) {
  std::optional<Quantity> multiplier = DecodeAmount(field);
  if (multiplier.has_value() && multiplier->IsZero()) {
    field.Error("must be more than 0");
  }
  return multiplier;
}

void DecodeMapping(const Field& field,
                   const SortedMap<DeviceCapacity>& capacity,
                   NodeAllocatableResource& resource) {
  const Field key = field["capacityKey"];
  const Field multiplier = field["capacityMultiplier"];
  const Field per_device = field["deviceMultiplier"];
  resource.capacity_multiplier = DecodeMultiplier(multiplier);
  resource.device_multiplier = DecodeMultiplier(per_device);
  const bool has_capacity = key.IsPresent() || multiplier.IsPresent();
  if (has_capacity == per_device.IsPresent()) {
    field.Error(
        "must have either capacityKey and capacityMultiplier, or "
        "deviceMultiplier");
    return;
  }
  if (!has_capacity) return;
  resource.capacity_key = RequiredName(key, nullptr);
  if (!resource.capacity_key.empty() &&
      !capacity.contains(resource.capacity_key)) {
    key.Error(fmt::format("the device has no capacity {}",
                          Quoted(resource.capacity_key)));
  }
  if (!multiplier.IsPresent()) multiplier.Error("is required with capacityKey");
}

NodeAllocatableResource DecodeNodeResource(
    const std::string& name, const Field& field,
    const SortedMap<DeviceCapacity>& capacity) {
  NodeAllocatableResource resource;
  resource.resource = name;
  const Field mapping = field["mapping"];
  const Field overhead = field["overhead"];
  if (!mapping.IsPresent() && !overhead.IsPresent()) {
    field.Error("has neither mapping nor overhead; one at least is required");
  }
  if (mapping.IsMap()) DecodeMapping(mapping, capacity, resource);
  if (overhead.IsMap()) {
    resource.overhead_per_pod = DecodeAmount(overhead["perPod"]);
    resource.overhead_per_container = DecodeAmount(overhead["perContainer"]);
    if (!overhead["perPod"].IsPresent() &&
        !overhead["perContainer"].IsPresent()) {
      overhead.Error(
          "has neither perPod nor perContainer; one at least is required");
    }
  }
  return resource;
}

}  // namespace

RareVector<NodeAllocatableResource> DecodeNodeResources(
    const Field& map, const SortedMap<DeviceCapacity>& capacity) {
  std::vector<NodeAllocatableResource> resources;
  for (const auto& [name, field] : map.Members()) {
    if (!IsNodeAllocatable(name)) {
      field.Error(fmt::format(
          "{} cannot be taken for devices; cpu, memory and hugepages-* can",
          Quoted(name)));
    }
    if (!field.RequireMap()) continue;
    resources.push_back(DecodeNodeResource(name, field, capacity));
  }
  return resources;
}

}  // namespace devmgr::api
