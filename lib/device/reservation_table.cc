// SPDX-License-Identifier: Apache-2.0
#include "device/reservation_table.h"

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::device {

using api::Quoted;

absl::Status ReservationTable::Add(Reservation reservation) {
  if (Find(reservation.pod, reservation.container, reservation.resource) !=
      nullptr) {
    return FailedPreconditionError(
        "container {} of pod {} has a reservation of {} already",
        Quoted(reservation.container), Quoted(reservation.pod.value),
        Quoted(reservation.resource));
  }
  std::vector<HeldDevice>& devices = reservation.devices;
  std::sort(devices.begin(), devices.end(),
            [](const auto& a, const auto& b) { return IdLess(a.id, b.id); });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i > 0 && devices[i].id == devices[i - 1].id) {
      return InvalidArgumentError("device {} of {} is reserved twice",
                                  Quoted(devices[i].id),
                                  Quoted(reservation.resource));
    }
    const Holder* holder = HolderOf(reservation.resource, devices[i].id);
    if (holder != nullptr && holder->pod != reservation.pod) {
      return FailedPreconditionError(
          "device {} of {} is held by pod {}", Quoted(devices[i].id),
          Quoted(reservation.resource), Quoted(holder->pod.value));
    }
  }
  for (const HeldDevice& device : devices) {
    Holder& holder = held_[reservation.resource][device.id];
    holder.pod = reservation.pod;
    ++holder.containers;
  }
  pods_[reservation.pod].push_back(std::move(reservation));
  return absl::OkStatus();
}

void ReservationTable::Commit(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  for (Reservation& reservation : found->second) {
    reservation.phase = ReservationPhase::kCommitted;
  }
}

std::vector<FreedDevices> ReservationTable::ReleasePod(const PodUid& pod) {
  return Release(pod, [](const Reservation&) { return true; });
}

std::vector<FreedDevices> ReservationTable::ReleaseContainer(
    const PodUid& pod, const ContainerName& container) {
  return Release(pod, [&](const Reservation& reservation) {
    return reservation.container == container;
  });
}

const std::vector<Reservation>& ReservationTable::OfPod(
    const PodUid& pod) const {
  static const std::vector<Reservation> kNone;
  const auto found = pods_.find(pod);
  return found == pods_.end() ? kNone : found->second;
}

const Reservation* ReservationTable::Find(const PodUid& pod,
                                          const ContainerName& container,
                                          const ResourceName& resource) const {
  for (const Reservation& reservation : OfPod(pod)) {
    if (reservation.container == container &&
        reservation.resource == resource) {
      return &reservation;
    }
  }
  return nullptr;
}

const ReservationTable::Holder* ReservationTable::HolderOf(
    const ResourceName& resource, const DeviceId& id) const {
  const HeldIds& held = Held(resource);
  const auto found = held.find(id);
  return found == held.end() ? nullptr : &found->second;
}

const ReservationTable::HeldIds& ReservationTable::Held(
    const ResourceName& resource) const {
  static const HeldIds kNone;
  const auto found = held_.find(resource);
  return found == held_.end() ? kNone : found->second;
}

template <typename Matches>
std::vector<FreedDevices> ReservationTable::Release(const PodUid& pod,
                                                    Matches matches) {
  std::map<ResourceName, std::vector<DeviceId>> freed;
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return {};
  std::erase_if(found->second, [&](const Reservation& reservation) {
    if (!matches(reservation)) return false;
    Free(reservation, freed);
    return true;
  });
  if (found->second.empty()) pods_.erase(found);
  std::vector<FreedDevices> result;
  for (auto& [resource, ids] : freed) {
    std::sort(ids.begin(), ids.end(), IdLess);
    result.push_back({resource, std::move(ids)});
  }
  return result;
}

void ReservationTable::Free(
    const Reservation& reservation,
    std::map<ResourceName, std::vector<DeviceId>>& freed) {
  const auto resource = held_.find(reservation.resource);
  if (resource == held_.end()) return;
  for (const HeldDevice& device : reservation.devices) {
    const auto holder = resource->second.find(device.id);
    if (holder == resource->second.end()) continue;
    if (--holder->second.containers > 0) continue;
    resource->second.erase(holder);
    freed[reservation.resource].push_back(device.id);
  }
  if (resource->second.empty()) held_.erase(resource);
}

}  // namespace devmgr::device
