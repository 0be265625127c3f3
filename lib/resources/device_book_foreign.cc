// SPDX-License-Identifier: Apache-2.0
//
// Devices of containers that the ledger has no pod for: in the book each such
// container is a pod of its own, whose UID no pod can have.
#include <algorithm>
#include <tuple>
#include <utility>

#include "resources/device_book.h"

namespace devmgr::resources {

std::vector<device::FreedDevices> DeviceBook::DropForeign() {
  std::vector<device::FreedDevices> freed;
  for (const auto& [uid, id] : std::exchange(foreign_, {})) {
    for (device::FreedDevices& devices : reservations_.ReleasePod(uid)) {
      freed.push_back(std::move(devices));
    }
  }
  return freed;
}

void DeviceBook::AddForeign() {
  for (const auto& [resource, device, id] : parts_.state.foreign_devices) {
    // Of several containers the first one stands for all.
    AddForeign(resource, device, id);
  }
}

void DeviceBook::AddForeign(const ResourceName& resource,
                            const DeviceId& device,
                            const state::ContainerId& id) {
  if (reservations_.HolderOf(resource, device) != nullptr) return;
  device::Reservation reservation =
      claim::ForeignReservation(resource, device, id);
  foreign_[reservation.pod] = id;
  // The device was found free.
  reservations_.Add(std::move(reservation)).IgnoreError();
}

void DeviceBook::AddForeignOf(const device::FreedDevices& devices) {
  for (const DeviceId& device : devices.ids) {
    const auto first = parts_.state.foreign_devices.lower_bound(
        {devices.resource, device, state::ContainerId{}});
    if (first == parts_.state.foreign_devices.end() ||
        std::get<0>(*first) != devices.resource ||
        std::get<1>(*first) != device) {
      continue;
    }
    AddForeign(devices.resource, device, std::get<2>(*first));
  }
}

void DeviceBook::DropForeignOf(const device::Reservation& wanted) {
  for (const device::HeldDevice& device : wanted.devices) {
    const auto* holder = reservations_.HolderOf(wanted.resource, device.id);
    if (holder != nullptr && elsewhere_.contains(holder->pod)) {
      const PodUid uid = holder->pod;
      elsewhere_.erase(uid);
      reservations_.ReleasePod(uid);
      continue;
    }
    const auto foreign =
        holder == nullptr ? foreign_.end() : foreign_.find(holder->pod);
    if (foreign == foreign_.end()) continue;
    reservations_.ReleaseContainer(
        foreign->first,
        claim::ForeignReservation(wanted.resource, device.id, foreign->second)
            .container);
    if (reservations_.OfPod(foreign->first).empty()) foreign_.erase(foreign);
  }
}

void DeviceBook::OnForeignHolders() {
  const std::vector<device::FreedDevices> before = DropForeign();
  AddForeign();
  for (const auto& [uid, id] : foreign_) MarkHeldBy(uid);
  std::set<ResourceName> resources;
  for (const device::FreedDevices& freed : before) {
    Mark(freed);
    if (!Unheld(freed).empty()) resources.insert(freed.resource);
  }
  for (const ResourceName& resource : resources) {
    parts_.on_devices(resource);
    // Wakes pods that want it through claims, too.
    parts_.on_plugin(resource);
    parts_.on_candidates(resource);
  }
}

std::optional<std::string> DeviceBook::ForeignName(const PodUid& uid) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (const auto held = elsewhere_.find(uid); held != elsewhere_.end()) {
    return claim::HolderText(held->second);
  }
  const auto found = foreign_.find(uid);
  if (found == foreign_.end()) return std::nullopt;
  const auto* holder = parts_.state.FindHolder(found->second);
  if (holder == nullptr) return std::nullopt;
  return state::HolderText(*holder);
}

bool DeviceBook::IsAdoption(
    const std::vector<device::Reservation>& plan) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return std::all_of(
      plan.begin(), plan.end(), [&](const device::Reservation& reservation) {
        return std::all_of(
            reservation.devices.begin(), reservation.devices.end(),
            [&](const device::HeldDevice& device) {
              const auto* holder =
                  reservations_.HolderOf(reservation.resource, device.id);
              const auto found = holder == nullptr ? foreign_.end()
                                                   : foreign_.find(holder->pod);
              if (found == foreign_.end()) return false;
              const auto* record = parts_.state.FindHolder(found->second);
              return record != nullptr && record->pod_uid == reservation.pod;
            });
      });
}

}  // namespace devmgr::resources
