// SPDX-License-Identifier: Apache-2.0
#include "claim/device_plan.h"

#include <algorithm>
#include <utility>

namespace devmgr::claim {
namespace {

/// A table in which this pod may have what its containers hold; adds what that
/// is to `adopted`.
device::ReservationTable WithoutForeignOf(
    const PluginDevices& devices, const PodUid& pod,
    std::map<device::NeedKey, device::IdSet>* adopted) {
  device::ReservationTable table = devices.reservations;
  for (const auto& [id, holder] : devices.state.foreign_holders) {
    if (holder->pod_uid == pod) table.ReleasePod(ForeignUid(id));
  }
  for (const auto& [id, holder] : devices.state.foreign_holders) {
    if (holder->pod_uid != pod || !holder->Holds()) continue;
    for (const auto& [resource, device] : holder->devices) {
      if (table.HolderOf(resource, device) != nullptr) continue;
      const state::ForeignHolderRecord* other =
          devices.state.ForeignHolderOf(resource, device, pod);
      if (other == nullptr) {
        (*adopted)[{holder->container, resource}].insert(device);
        continue;
      }
      // This one stood for both of them.
      table.Add(ForeignReservation(resource, device, other->id)).IgnoreError();
    }
  }
  return table;
}

}  // namespace

PodUid ForeignUid(const state::ContainerId& id) {
  // UIDs of pods have no slash.
  return PodUid{"foreign container/" + id.value};
}

device::Reservation ForeignReservation(const ResourceName& resource,
                                       const DeviceId& device,
                                       const state::ContainerId& id) {
  device::Reservation reservation;
  reservation.pod = ForeignUid(id);
  reservation.container = resource.value + ' ' + device.value;
  reservation.resource = resource;
  reservation.phase = device::ReservationPhase::kCommitted;
  reservation.devices.push_back({device, {}});
  return reservation;
}

PodUid ElsewhereUid(const ResourceName& resource, const DeviceId& device) {
  // As above.
  return PodUid{"elsewhere/" + resource.value + ' ' + device.value};
}

device::Reservation ElsewhereReservation(const ResourceName& resource,
                                         const DeviceId& device) {
  device::Reservation reservation;
  reservation.pod = ElsewhereUid(resource, device);
  reservation.container = device.value;
  reservation.resource = resource;
  reservation.phase = device::ReservationPhase::kCommitted;
  reservation.devices.push_back({device, {}});
  return reservation;
}

HardwareByNeed HardwareOf(const PluginHardware& known,
                          const std::vector<device::Reservation>& plan) {
  HardwareByNeed all;
  for (const device::Reservation& reservation : plan) {
    for (const device::HeldDevice& device : reservation.devices) {
      const auto of = known.find({reservation.resource, device.id});
      if (of == known.end()) continue;
      device::Hardware& hardware =
          all[{reservation.container, reservation.resource}];
      for (const auto& identity : of->second.identities) {
        hardware.Add(identity);
      }
      hardware.part = hardware.part || of->second.part;
    }
  }
  return all;
}

device::ReservationTable ReservationsOf(
    const state::State& state,
    const std::map<PodUid, std::vector<device::Reservation>>& intended) {
  device::ReservationTable table;
  for (const auto& [uid, pod] : state.pods) {
    for (device::Reservation& reservation : state::ReservationsOf(*pod)) {
      // The ledger holds to the rules of the table.
      table.Add(std::move(reservation)).IgnoreError();
    }
  }
  for (const auto& [uid, plan] : intended) {
    for (const device::Reservation& reservation : plan) {
      table.Add(reservation).IgnoreError();
    }
  }
  for (const auto& [resource, device, id] : state.foreign_devices) {
    // Of several containers the first one stands for all.
    if (table.HolderOf(resource, device) != nullptr) continue;
    table.Add(ForeignReservation(resource, device, id)).IgnoreError();
  }
  return table;
}

device::PodPlan PlanDevices(const PluginDevices& devices,
                            const WantedDevices& wanted) {
  std::map<device::NeedKey, device::IdSet> adopted;
  device::ReservationTable own;
  const auto& foreign = devices.state.foreign_holders;
  const bool has_foreign = std::any_of(
      foreign.begin(), foreign.end(),
      [&](const auto& entry) { return entry.second->pod_uid == wanted.pod; });
  if (has_foreign) own = WithoutForeignOf(devices, wanted.pod, &adopted);
  device::PlanInput input{
      .pod = wanted.pod,
      .needs = wanted.needs,
      .inventories = devices.inventories,
      .reservations = has_foreign ? own : devices.reservations};
  input.adopted = std::move(adopted);
  input.preferences = wanted.preferences;
  input.asking = wanted.asking;
  input.trust_held = wanted.trust_held;
  input.judge_held = wanted.judge_held;
  input.masks = wanted.masks;
  input.kept = wanted.kept;
  for (const device::DeviceNeed& need : wanted.needs) {
    if (devices.sharing == Sharing::kOneOwner) {
      std::vector<PodUid> holders = devices.state.ClassHoldersOf(
          need.resource, device::Shortage::kMaxNames);
      std::erase(holders, wanted.pod);
      input.claimed_by[need.resource] = std::move(holders);
    }
    input.handed_over[need.resource] =
        TakenFromPlugin(devices.state, need.resource);
  }
  return device::PlanPod(input);
}

std::int64_t FreeDevices(const PluginDevices& devices,
                         const ResourceName& resource) {
  const auto inventory = devices.inventories.find(resource);
  if (inventory == devices.inventories.end()) return 0;
  const auto state = inventory->second.state();
  if (state != device::EndpointState::kLive) return 0;
  if (devices.sharing == Sharing::kOneOwner &&
      !devices.state.ClassHoldersOf(resource, 1).empty()) {
    return 0;
  }
  if (!TakenFromPlugin(devices.state, resource).empty()) return 0;
  return inventory->second.free_count();
}

}  // namespace devmgr::claim
