// SPDX-License-Identifier: Apache-2.0
//
// Devices whose hardware a pod has by another driver or device plugin: in the
// book each such device is held by a pod of its own, whose UID no pod can have.
#include <algorithm>
#include <utility>

#include "resources/device_book.h"

namespace devmgr::resources {
namespace {

template <typename Record>
void AddIdentities(const ledger::Passage<Record>& passage,
                   std::set<device::PhysicalIdentity>* all) {
  for (const auto& record : {passage.before, passage.now}) {
    if (record == nullptr) continue;
    for (const auto& [owner, hardware] : state::HardwareOf(*record)) {
      all->insert(hardware->identities.begin(), hardware->identities.end());
    }
  }
}

}  // namespace

claim::HardwareByNeed DeviceBook::HardwareOf(
    const std::vector<device::Reservation>& plan) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return claim::HardwareOf(hardware_, plan);
}

device::Hardware DeviceBook::HardwareOf(const ResourceName& resource,
                                        const DeviceId& id) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto known = hardware_.find({resource, id});
  if (known != hardware_.end()) return known->second;
  // Its plugin may not be back yet.
  if (!parts_.hardware.one_holder ||
      device::IsSharedByIntent(resource.value, parts_.hardware)) {
    return {};
  }
  return device::HardwareOf(id);
}

void DeviceBook::Learn(const ResourceName& resource,
                       const std::vector<DeviceId>& ids,
                       const device::Hardware& hardware) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const DeviceId& id : ids) Know({resource, id}, hardware);
}

void DeviceBook::Know(const DeviceName& device,
                      const device::Hardware& hardware) {
  if (const auto known = hardware_.find(device); known != hardware_.end()) {
    if (known->second == hardware) return;
    for (const auto& identity : known->second.identities) {
      by_hardware_.erase({identity, device});
    }
    hardware_.erase(known);
  }
  for (const device::PhysicalIdentity& identity : hardware.identities) {
    by_hardware_.insert({identity, device});
  }
  if (!hardware.empty()) hardware_[device] = hardware;
  JudgeElsewhere(device);
}

void DeviceBook::KnowByList(const ResourceName& resource,
                            const device::InventoryDelta& delta) {
  if (!parts_.hardware.one_holder ||
      device::IsSharedByIntent(resource.value, parts_.hardware)) {
    return;
  }
  for (const DeviceId& id : delta.vanished) Know({resource, id}, {});
  for (const DeviceId& id : delta.added) {
    device::Hardware hardware = device::HardwareOf(id);
    // An answer may have said more.
    const bool is_known = hardware_.contains({resource, id});
    if (!hardware.empty() && !is_known) Know({resource, id}, hardware);
  }
}

void DeviceBook::KnowByHolds(const state::PodRecord& pod) {
  for (const state::DeviceHold& hold : pod.holds) {
    if (!hold.Holds() || hold.hardware.empty()) continue;
    if (hold.devices.size() != 1) continue;  // Which is which is not known.
    Know({hold.resource, hold.devices.front().id}, hold.hardware);
  }
}

void DeviceBook::JudgeElsewhere(const DeviceName& device) {
  const auto& [resource, id] = device;
  const PodUid uid = claim::ElsewhereUid(resource, id);
  const bool was_elsewhere = elsewhere_.contains(uid);
  const auto known = hardware_.find(device);
  if (known == hardware_.end() && !was_elsewhere) return;
  std::optional<claim::HeldHardware> held;
  if (known != hardware_.end()) {
    held = claim::FindHardwareHolder(parts_.state, known->second,
                                     {resource.value, {}, {}});
  }
  if (held.has_value() && was_elsewhere) {
    elsewhere_[uid] = *std::move(held);
    return;
  }
  if (held.has_value()) {
    if (reservations_.HolderOf(resource, id) != nullptr) return;
    elsewhere_[uid] = *std::move(held);
    // The device was found free.
    reservations_.Add(claim::ElsewhereReservation(resource, id)).IgnoreError();
  } else if (was_elsewhere) {
    elsewhere_.erase(uid);
    reservations_.ReleasePod(uid);
  }
  Mark({resource, {id}});
  if (was_elsewhere) parts_.on_devices(resource);
}

void DeviceBook::JudgeElsewhere(const ledger::Changes& changes) {
  if (!parts_.hardware.one_holder) return;
  for (const auto& [before, now] : changes.pods) {
    if (now != nullptr) KnowByHolds(*now);
  }
  if (hardware_.empty()) return;
  std::set<device::PhysicalIdentity> changed;
  for (const auto& passage : changes.pods) AddIdentities(passage, &changed);
  for (const auto& passage : changes.claims) AddIdentities(passage, &changed);
  for (const auto& passage : changes.holders) AddIdentities(passage, &changed);
  for (const auto& passage : changes.local_claims) {
    AddIdentities(passage, &changed);
  }
  std::set<DeviceName> devices;
  for (const device::PhysicalIdentity& identity : changed) {
    for (auto item = by_hardware_.lower_bound({identity, DeviceName{}});
         item != by_hardware_.end() && item->first == identity; ++item) {
      devices.insert(item->second);
    }
  }
  for (const DeviceName& device : devices) JudgeElsewhere(device);
}

}  // namespace devmgr::resources
