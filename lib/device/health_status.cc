// SPDX-License-Identifier: Apache-2.0
#include "device/health_status.h"

#include <algorithm>
#include <utility>

namespace devmgr::device {
namespace {

DeviceHealthStatus StatusOf(const DeviceId& id, const InventoryDevice* known) {
  if (known == nullptr) return {.id = id};
  return {.id = id,
          .health = known->device.health,
          .message = std::string(HealthReasonText(known->reason)),
          .since_ms = known->since_ms};
}

ContainerHealthStatus& StatusOfContainer(
    const Reservation& reservation, std::vector<ContainerHealthStatus>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return one.container == reservation.container;
  });
  if (found != all.end()) return *found;
  return all.emplace_back(ContainerHealthStatus{
      .container = reservation.container, .kind = reservation.kind});
}

}  // namespace

std::vector<ContainerHealthStatus> HealthStatusOf(
    const std::vector<Reservation>& reservations, const FindKnown& find) {
  std::vector<ContainerHealthStatus> containers;
  for (const Reservation& reservation : reservations) {
    ResourceHealthStatus status{.resource = reservation.resource};
    for (const HeldDevice& device : reservation.devices) {
      status.devices.push_back(
          StatusOf(device.id, find(reservation.resource, device.id)));
    }
    StatusOfContainer(reservation, containers)
        .resources.push_back(std::move(status));
  }
  for (ContainerHealthStatus& container : containers) {
    std::sort(
        container.resources.begin(), container.resources.end(),
        [](const auto& a, const auto& b) { return a.resource < b.resource; });
  }
  return containers;
}

std::vector<ResourceHealthStatus> WithStatus(
    std::vector<ResourceHealthStatus> status,
    const std::vector<ResourceHealthStatus>& ours) {
  for (const ResourceHealthStatus& one : ours) {
    const auto same = std::find_if(
        status.begin(), status.end(),
        [&](const auto& other) { return other.resource == one.resource; });
    if (same != status.end()) {
      *same = one;
    } else {
      status.push_back(one);
    }
  }
  return status;
}

std::set<PodUid> PodsConcerned(const InventoryDelta& delta,
                               const ReservationTable::HeldIds& held) {
  std::set<PodUid> pods;
  if (held.empty()) return pods;
  const auto add = [&](const DeviceId& id) {
    const auto holder = held.find(id);
    if (holder != held.end()) pods.insert(holder->second.pod);
  };
  for (const DeviceId& id : delta.added) add(id);
  for (const DeviceId& id : delta.vanished) add(id);
  for (const auto& change : delta.changed) add(change.id);
  return pods;
}

}  // namespace devmgr::device
