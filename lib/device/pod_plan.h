// SPDX-License-Identifier: Apache-2.0
//
// Devices for a whole pod: all containers and all resources are planned before
// anything is reserved, so a pod gets all it needs or nothing.
#pragma once

#include <absl/status/status.h>
#include <devmgr/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/inventory.h"
#include "device/pod_needs.h"
#include "device/reservation.h"
#include "device/reservation_table.h"
#include "device/selection.h"

namespace devmgr::device {

/// Container and resource.
using NeedKey = std::pair<ContainerName, ResourceName>;

struct PlanInput {
  PodUid pod;
  std::vector<DeviceNeed> needs;  ///< In the order of NeedsOf.
  const InventoryMap& inventories;
  const ReservationTable& reservations;
  /// Resources whose plugin offers a preference.
  std::set<ResourceName> asking = {};
  /// Answers so far.
  std::map<NeedKey, std::vector<DeviceId>> preferences = {};
  /// NUMA nodes to prefer, ascending.
  std::map<NeedKey, std::vector<std::int64_t>> masks = {};
  /// Pods that hold claims for a resource, the first few; of such a resource
  /// nothing is chosen. The pod itself is not among them.
  std::map<ResourceName, std::vector<PodUid>> claimed_by = {};
  /// By resource: why an operator keeps it from its plugin; empty: he does not.
  std::map<ResourceName, std::string> handed_over = {};
  /// Devices that a container which runs already has, and no other container:
  /// it gets these first.
  std::map<NeedKey, IdSet> adopted = {};
  /// What the pod holds is believed while no plugin has reported its devices.
  /// False once the pod's containers are gone (a reboot): then they are waited
  /// for.
  bool trust_held = true;
  /// What the pod holds has to work. False: it runs on it anyway.
  bool judge_held = true;
  /// By resource: free devices that are kept for pods of another kind.
  std::map<ResourceName, KeptDevices> kept = {};
};

struct PodPlan {
  /// What is to be reserved, in the order of the needs; nothing for those whose
  /// devices are held already.
  std::vector<Reservation> reservations;
  /// Plugins to ask: at most one question per resource at a time, since an
  /// answer changes what the next container can have. Put the answers into
  /// `preferences` and plan again. Empty when there is a shortage.
  std::vector<PreferenceQuestion> questions;
  /// By resource, the first of each. If there is any, nothing is planned.
  std::vector<Shortage> shortages;

  /// `reservations` is what to reserve.
  bool Complete() const { return questions.empty() && shortages.empty(); }
};

/// Devices are handed on between containers of the pod: what an init container
/// has, every later container may take over; what a sidecar or an app container
/// has taken, no other may. An init container that runs again uses what those
/// after it hold.
PodPlan PlanPod(const PlanInput& input);

/// The pod that holds the device, or null.
using HolderLookup = std::function<const PodUid*(const ResourceName& resource,
                                                 const DeviceId& id)>;

/// Is a plan still good for reserving? For the thread that decides.
///   Aborted  another pod has taken a device meanwhile: plan again
absl::Status CheckStillFree(const std::vector<Reservation>& plan,
                            const HolderLookup& holder_of);

/// Are all its devices still there and healthy?
///   Aborted  names the first that is not: plan again
absl::Status CheckStillUsable(const std::vector<Reservation>& plan,
                              const InventoryMap& inventories);

}  // namespace devmgr::device
