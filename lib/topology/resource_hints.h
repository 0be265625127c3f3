// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "device/pod_needs.h"
#include "device/reservation_table.h"
#include "device/selection.h"
#include "topology/hints.h"

namespace devmgr::topology {

/// How much of a resource is asked for.
struct HintRequest {
  PodUid pod;
  ContainerName container;  ///< Empty: the pod as a whole.
  ResourceName resource;
  std::int64_t count = 0;
  /// Devices that earlier containers of the pod hand on; none for a whole pod.
  device::IdSet reusable = {};
  /// Devices that earlier containers of the pod take, besides what they hold.
  device::IdSet planned = {};
};

/// Hints of one resource. A pod or container that holds its devices already
/// gets the hints of exactly these. No opinion when no device has a node, or
/// nothing is asked for.
Hints HintsOf(const device::Inventory& inventory,
              const device::ReservationTable& reservations,
              const HintRequest& request, const NumaNodes& machine_nodes,
              const HintLimits& limits = {});

/// Hints for all a pod needs at once (device::EffectiveNeeds), by resource.
/// Resources without an inventory are left out.
std::map<ResourceName, Hints> PodHints(
    const PodUid& pod, const std::vector<device::DeviceNeed>& needs,
    const device::InventoryMap& inventories,
    const device::ReservationTable& reservations,
    const NumaNodes& machine_nodes, const HintLimits& limits = {});

}  // namespace devmgr::topology
