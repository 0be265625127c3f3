// SPDX-License-Identifier: Apache-2.0
//
// What a pod wants of device plugins.
#pragma once

#include <devmgr/objects.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/reservation.h"

namespace devmgr::device {

/// What one container wants of one resource.
struct DeviceNeed {
  ContainerName container;
  ContainerKind kind = ContainerKind::kApp;
  ResourceName resource;
  std::int64_t count = 0;
  friend bool operator==(const DeviceNeed&, const DeviceNeed&) = default;
};

/// Limits on extended resources: init containers first, both kinds in the
/// pod's order, resources by name. With `dra_extended_resources` those are left
/// out that the pod's status maps to a claim.
std::vector<DeviceNeed> NeedsOf(const Pod& pod, bool dra_extended_resources);

/// What the pod needs at once, by resource: the largest stage of its init
/// containers (sidecars that run already included), or all app containers and
/// sidecars, whichever is more.
std::map<ResourceName, std::int64_t> EffectiveNeeds(
    const std::vector<DeviceNeed>& needs);

}  // namespace devmgr::device
