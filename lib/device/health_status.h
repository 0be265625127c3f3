// SPDX-License-Identifier: Apache-2.0
//
// The health of what pods hold, as values of `allocatedResourcesStatus` in a
// pod's status, and which pods a change concerns.
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "device/reservation.h"
#include "device/reservation_table.h"

namespace devmgr::device {

struct DeviceHealthStatus {
  DeviceId id;
  Health health = Health::kUnknown;
  /// Why, and since when; empty and 0 when no plugin has reported the device
  /// since we started.
  std::string message;
  std::int64_t since_ms = 0;
  friend bool operator==(const DeviceHealthStatus&,
                         const DeviceHealthStatus&) = default;
};

struct ResourceHealthStatus {
  ResourceName resource;
  std::vector<DeviceHealthStatus> devices;  ///< In natural order.
  friend bool operator==(const ResourceHealthStatus&,
                         const ResourceHealthStatus&) = default;
};

struct ContainerHealthStatus {
  ContainerName container;
  ContainerKind kind = ContainerKind::kApp;
  std::vector<ResourceHealthStatus> resources;  ///< By name.
  friend bool operator==(const ContainerHealthStatus&,
                         const ContainerHealthStatus&) = default;
};

/// A device of a resource; null when it is not known.
using FindKnown = std::function<const InventoryDevice*(
    const ResourceName& resource, const DeviceId& id)>;

/// Of all containers of a pod that hold devices, of every kind, in the order in
/// which these were reserved.
std::vector<ContainerHealthStatus> HealthStatusOf(
    const std::vector<Reservation>& reservations, const FindKnown& find);

/// Puts `ours` into a status that has others' entries, too: an entry of the
/// same resource is replaced where it stands, a new one comes last.
std::vector<ResourceHealthStatus> WithStatus(
    std::vector<ResourceHealthStatus> status,
    const std::vector<ResourceHealthStatus>& ours);

/// The pods that hold a device whose health, or presence, `delta` changes.
std::set<PodUid> PodsConcerned(const InventoryDelta& delta,
                               const ReservationTable::HeldIds& held);

}  // namespace devmgr::device
