// SPDX-License-Identifier: Apache-2.0
#include "device/pod_needs.h"

#include <algorithm>
#include <limits>

#include "api/names.h"

namespace devmgr::device {
namespace {

bool ServedByClaim(const Pod& pod, const ContainerName& container,
                   const ResourceName& resource) {
  const auto& status = pod.status.extended_resource_claim_status;
  return status.has_value() &&
         std::any_of(status->request_mappings.begin(),
                     status->request_mappings.end(), [&](const auto& mapping) {
                       return mapping.container_name == container &&
                              mapping.resource_name == resource;
                     });
}

ContainerKind KindOf(const Container& container, bool init) {
  if (!init) return ContainerKind::kApp;
  return container.restart_policy == "Always" ? ContainerKind::kSidecar
                                              : ContainerKind::kInit;
}

/// Numbers beyond 64 bits are as good as the largest: nobody has so many.
std::int64_t Sum(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return a > kMax - b ? kMax : a + b;
}

}  // namespace

std::vector<DeviceNeed> NeedsOf(const Pod& pod, bool dra_extended_resources) {
  std::vector<DeviceNeed> needs;
  const auto add = [&](const Container& container, bool init) {
    for (const auto& [resource, quantity] : container.resources.limits) {
      if (!api::IsExtendedResourceName(resource)) continue;
      if (dra_extended_resources &&
          ServedByClaim(pod, container.name, resource)) {
        continue;
      }
      needs.push_back({container.name, KindOf(container, init), resource,
                       std::max<std::int64_t>(quantity.whole, 0)});
    }
  };
  for (const Container& container : pod.spec.init_containers) {
    add(container, true);
  }
  for (const Container& container : pod.spec.containers) add(container, false);
  return needs;
}

std::map<ResourceName, std::int64_t> EffectiveNeeds(
    const std::vector<DeviceNeed>& needs) {
  struct Stages {
    std::int64_t running = 0;  ///< Sidecars and app containers so far.
    std::int64_t largest = 0;
  };
  std::map<ResourceName, Stages> resources;
  for (const DeviceNeed& need : needs) {
    Stages& stages = resources[need.resource];
    const std::int64_t now = Sum(stages.running, need.count);
    stages.largest = std::max(stages.largest, now);
    if (need.kind != ContainerKind::kInit) stages.running = now;
  }
  std::map<ResourceName, std::int64_t> effective;
  for (const auto& [resource, stages] : resources) {
    effective[resource] = stages.largest;
  }
  return effective;
}

}  // namespace devmgr::device
