// SPDX-License-Identifier: Apache-2.0
//
// Devices of containers that the ledger has no pod for: in the book each such
// container is a pod of its own, whose UID no pod can have.
#include <algorithm>
#include <utility>

#include "manager/device_book.h"

namespace devmgr::manager {
namespace {

/// UIDs of pods have no slash.
PodUid UidOf(const state::ContainerId& id) {
  return PodUid{"foreign container/" + id.value};
}

}  // namespace

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
  // By container and resource; a device has one holder in the table.
  std::map<std::pair<state::ContainerId, std::string>, device::Reservation> all;
  const std::string* last_resource = nullptr;
  const std::string* last_device = nullptr;
  for (const auto& [resource, device, id] : parts_.state.foreign_devices) {
    const bool is_again = last_resource != nullptr &&
                          *last_resource == resource && *last_device == device;
    last_resource = &resource;
    last_device = &device;
    if (is_again || reservations_.HolderOf(resource, device) != nullptr) {
      continue;
    }
    device::Reservation& reservation = all[{id, resource}];
    reservation.pod = UidOf(id);
    reservation.resource = resource;
    reservation.phase = device::ReservationPhase::kCommitted;
    reservation.devices.push_back({device, {}});
  }
  for (auto& [key, reservation] : all) {
    foreign_[reservation.pod] = key.first;
    // Each device was found free.
    reservations_.Add(std::move(reservation)).IgnoreError();
  }
}

void DeviceBook::OnForeignHolders() {
  const std::vector<device::FreedDevices> before = DropForeign();
  AddForeign();
  for (const auto& [uid, id] : foreign_) MarkHeldBy(uid);
  std::set<std::string> resources;
  for (const device::FreedDevices& freed : before) {
    Mark(freed);
    if (!Unheld(freed).empty()) resources.insert(freed.resource);
  }
  for (const std::string& resource : resources) {
    parts_.on_devices(resource);
    // Wakes pods that want it through claims, too.
    parts_.on_plugin(resource);
    parts_.on_candidates(resource);
  }
}

std::optional<std::string> DeviceBook::ForeignName(const PodUid& uid) const {
  const auto found = foreign_.find(uid);
  if (found == foreign_.end()) return std::nullopt;
  const auto* holder = parts_.state.FindHolder(found->second);
  if (holder == nullptr) return std::nullopt;
  return state::HolderText(*holder);
}

device::ReservationTable DeviceBook::WithoutForeignOf(
    const PodUid& pod,
    std::map<device::NeedKey, device::IdSet>* adopted) const {
  device::ReservationTable table = reservations_;
  for (const auto& [id, holder] : parts_.state.foreign_holders) {
    if (holder->pod_uid == pod) table.ReleasePod(UidOf(id));
  }
  for (const auto& [id, holder] : parts_.state.foreign_holders) {
    if (holder->pod_uid != pod || !holder->Holds()) continue;
    for (const auto& [resource, device] : holder->devices) {
      // Another container may hold it, too.
      if (parts_.state.ForeignHolderOf(resource, device, pod) != nullptr ||
          table.HolderOf(resource, device) != nullptr) {
        continue;
      }
      (*adopted)[{holder->container, resource}].insert(device);
    }
  }
  return table;
}

bool DeviceBook::IsAdoption(
    const std::vector<device::Reservation>& plan) const {
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

}  // namespace devmgr::manager
