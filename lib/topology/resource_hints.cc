// SPDX-License-Identifier: Apache-2.0
#include "topology/resource_hints.h"

#include <algorithm>
#include <utility>

#include "topology/device_groups.h"

namespace devmgr::topology {
namespace {

using device::HeldDevice;
using device::Inventory;
using device::InventoryDevice;
using device::Reservation;
using device::ReservationTable;

/// What the asker holds of the resource, each device once.
std::map<DeviceId, NumaNodes> HeldBy(const HintRequest& request,
                                     const ReservationTable& reservations) {
  std::map<DeviceId, NumaNodes> held;
  for (const Reservation& one : reservations.OfPod(request.pod)) {
    if (one.resource != request.resource) continue;
    if (!request.container.empty() && one.container != request.container) {
      continue;
    }
    for (const HeldDevice& device : one.devices) {
      held.emplace(device.id, device.numa_nodes);
    }
  }
  return held;
}

bool AnyOnANode(const Inventory& inventory) {
  return std::any_of(inventory.devices().begin(), inventory.devices().end(),
                     [](const InventoryDevice& known) {
                       return known.listed && !known.device.numa_nodes.empty();
                     });
}

}  // namespace

Hints HintsOf(const Inventory& inventory, const ReservationTable& reservations,
              const HintRequest& request, const NumaNodes& machine_nodes,
              const HintLimits& limits) {
  if (request.count <= 0 || !AnyOnANode(inventory)) return {};
  const std::map<DeviceId, NumaNodes> has = HeldBy(request, reservations);
  if (!has.empty() && static_cast<std::int64_t>(has.size()) != request.count) {
    return {.hints = std::vector<Hint>()};
  }
  DeviceGroups groups;
  for (const auto& [id, nodes] : has) {
    const InventoryDevice* known = inventory.Find(id);
    ++groups.On(known == nullptr ? nodes : known->device.numa_nodes).free;
  }
  const ReservationTable::HeldIds& held = reservations.Held(request.resource);
  for (const InventoryDevice& known : inventory.devices()) {
    if (!known.listed) continue;
    DeviceGroup& group = groups.On(known.device.numa_nodes);
    ++group.known;
    if (!has.empty()) continue;
    if (request.reusable.contains(known.device.id)) {
      ++group.reusable;
    } else if (known.Usable() && !held.contains(known.device.id) &&
               !request.planned.contains(known.device.id)) {
      ++group.free;
    }
  }
  return GenerateHints(groups.Take(), request.count, machine_nodes, limits);
}

std::map<ResourceName, Hints> PodHints(
    const PodUid& pod, const std::vector<device::DeviceNeed>& needs,
    const device::InventoryMap& inventories,
    const ReservationTable& reservations, const NumaNodes& machine_nodes,
    const HintLimits& limits) {
  std::map<ResourceName, Hints> hints;
  for (const auto& [resource, count] : device::EffectiveNeeds(needs)) {
    const auto inventory = inventories.find(resource);
    if (inventory == inventories.end()) continue;
    hints.emplace(resource,
                  HintsOf(inventory->second, reservations,
                          {.pod = pod, .resource = resource, .count = count},
                          machine_nodes, limits));
  }
  return hints;
}

}  // namespace devmgr::topology
