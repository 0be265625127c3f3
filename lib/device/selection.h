// SPDX-License-Identifier: Apache-2.0
//
// Which devices one container gets of one resource. The order of trial is the
// kubelet's (pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate); where
// it takes any device, the one with the lowest ID is taken.
#pragma once

#include <devmgr/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/id_order.h"
#include "device/inventory.h"
#include "device/reservation.h"
#include "device/reservation_table.h"

namespace devmgr::device {

using IdSet = std::set<DeviceId, IdOrder>;

/// What a plugin is asked (GetPreferredAllocation). IDs in natural order.
struct PreferenceQuestion {
  ContainerName container;
  ResourceName resource;
  std::vector<DeviceId> available;     ///< With `must_include`.
  std::vector<DeviceId> must_include;  ///< Chosen already.
  std::int64_t size = 0;               ///< Of the whole request.
  friend bool operator==(const PreferenceQuestion&,
                         const PreferenceQuestion&) = default;
};

/// Of the free devices of a resource so many are none for this pod; by count,
/// whichever these are.
struct KeptDevices {
  std::int64_t count = 0;
  /// Under Authority::kSplit: so many devices are for pods of this node,
  std::int64_t local_set = 0;
  bool local = false;  ///< and this is one.
};

/// Why a container cannot have what it wants, now or ever.
struct Shortage {
  static constexpr std::size_t kMaxNames = 16;
  enum class Kind {
    kNotServed,       ///< No plugin has reported its devices; see `state`.
    kHeldByClaims,    ///< Pods hold claims for the name; see `holders`.
    kHandedOver,      ///< An operator gave the name away; see `reason`.
    kTooFewExist,     ///< Not even if all were healthy and free.
    kTooFewHealthy,   ///< Not even if all were free; see `devices`.
    kTooFewFree,      ///< See `holders`.
    kChangedRequest,  ///< It holds `available` of them and wants `requested`.
    kHeldUnhealthy,   ///< What it holds does not work any more: `devices`.
    /// NUMA alignment is refused, and would not be if `holders` and `devices`
    /// were not in the way; see `reason`.
    kNotAligned,
    /// The same, whatever is free: see `reason`.
    kNeverAligned,
  };
  Kind kind = Kind::kNotServed;
  ContainerName container;
  ResourceName resource;
  EndpointState state = EndpointState::kUnknown;
  std::int64_t requested = 0;  ///< Beyond what it takes over.
  std::int64_t available = 0;
  bool none_healthy = false;    ///< Of all there are.
  std::vector<PodUid> holders;  ///< The first few; without the pod itself.
  /// `namespace/name` of the same; empty: they are named by UID.
  std::vector<std::string> holder_names = {};
  bool holders_end = false;  ///< One of them is being released.
  /// One of them has the hardware by another driver or device plugin.
  bool held_elsewhere = false;
  std::vector<DeviceId> devices;  ///< The first few.
  std::string reason;             ///< Of an operator, or of alignment.
  PodUid pod;
  // Of a container that finds too few.
  std::int64_t taken_over = 0;  ///< From init containers, beside `requested`.
  std::int64_t listed = 0;      ///< How many there are, in whatever health.
  std::int64_t ours = 0;        ///< Of these, for other containers of the pod.
  /// Free devices that pods of another kind have kept from it.
  std::optional<KeptDevices> kept = {};
};
/// What is missing, for people.
std::string ShortageText(const Shortage& shortage);
/// What the kubelet says in this case.
std::string KubeletShortageText(const Shortage& shortage);

struct SelectionInput {
  /// Knows which devices are held; one that it takes to be free may be in
  /// `held` all the same.
  const Inventory& inventory;
  const ReservationTable::HeldIds& held;  ///< Of the resource, by all pods.
  PodUid pod;
  std::int64_t count = 0;
  const IdSet& reusable;  ///< Of earlier containers of the pod.
  const IdSet& planned;   ///< Chosen for the pod, not among `held` yet.
  /// NUMA nodes to prefer, ascending; null: none.
  const std::vector<std::int64_t>* mask = nullptr;
  bool ask_preference = false;  ///< The plugin offers one.
  /// The plugin's answer; null: not asked yet. It is advice: what of it cannot
  /// be used is left aside.
  const std::vector<DeviceId>* preferred = nullptr;
  const KeptDevices* kept = nullptr;  ///< Null: none.
};

struct Selection {
  std::vector<HeldDevice> devices;  ///< In natural order.
  /// Set when the plugin has to be asked; `devices` is then what it would be
  /// without an answer.
  std::optional<PreferenceQuestion> question;
  std::optional<Shortage> shortage;  ///< Set: no devices.
};

/// Selects from an inventory whose state is kLive. Fills in neither container
/// nor resource.
Selection Select(const SelectionInput& input);

}  // namespace devmgr::device
