// SPDX-License-Identifier: Apache-2.0
//
// Devices of plugins for a pod, by what the ledger says of names and of
// containers that it has no pod for. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/backing.h"
#include "claim/device_booking.h"
#include "device/hardware.h"
#include "device/inventory.h"
#include "device/pod_needs.h"
#include "device/pod_plan.h"
#include "device/reservation.h"
#include "device/reservation_table.h"
#include "state/state.h"

namespace devmgr::claim {

/// What there is of devices, and which pods hold them. Borrowed.
struct PluginDevices {
  const state::State& state;
  const device::InventoryMap& inventories;
  const device::ReservationTable& reservations;
  Sharing sharing = Sharing::kOneOwner;
};

/// What a pod wants of them.
struct WantedDevices {
  PodUid pod;
  std::vector<device::DeviceNeed> needs;  ///< In the order of NeedsOf.
  std::map<device::NeedKey, std::vector<DeviceId>> preferences = {};
  /// Resources whose plugin offers a preference.
  std::set<ResourceName> asking = {};
  bool trust_held = true;  ///< As device::PlanInput has it.
  bool judge_held = true;
  /// NUMA nodes to prefer.
  std::map<device::NeedKey, std::vector<std::int64_t>> masks = {};
  /// By resource, as device::PlanInput has it.
  std::map<ResourceName, device::KeptDevices> kept = {};
};

/// Plans all of them; the pod's own containers get first what they have
/// already, unknown to the ledger.
device::PodPlan PlanDevices(const PluginDevices& devices,
                            const WantedDevices& wanted);

/// Healthy devices that are not held; none while claims are held for the name.
std::int64_t FreeDevices(const PluginDevices& devices,
                         const ResourceName& resource);

// In a table of reservations each container that the ledger has no pod for is a
// pod of its own, whose UID no pod can have. Each of its devices is that of a
// container of its own, so that one can come or go without the others.
PodUid ForeignUid(const state::ContainerId& id);
device::Reservation ForeignReservation(const ResourceName& resource,
                                       const DeviceId& device,
                                       const state::ContainerId& id);

// A device whose hardware a pod has by another driver or device plugin is held
// in the same way, by a pod of its own.
PodUid ElsewhereUid(const ResourceName& resource, const DeviceId& device);
device::Reservation ElsewhereReservation(const ResourceName& resource,
                                         const DeviceId& device);

/// Which hardware devices of plugins are; those of which nothing is known are
/// missing.
using PluginHardware =
    std::map<std::pair<ResourceName, DeviceId>, device::Hardware>;
/// The same, of what is planned.
HardwareByNeed HardwareOf(const PluginHardware& known,
                          const std::vector<device::Reservation>& plan);

/// All reservations of the state, `intended` ones that are on their way to it,
/// and what foreign holders have of the rest.
device::ReservationTable ReservationsOf(
    const state::State& state,
    const std::map<PodUid, std::vector<device::Reservation>>& intended = {});

}  // namespace devmgr::claim
