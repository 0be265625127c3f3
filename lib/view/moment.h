// SPDX-License-Identifier: Apache-2.0
//
// What a node knows at one moment, as values that later changes do not touch.
// The rooms keep what they know in these types; a copy of all of it costs
// nothing that grows with pods, claims or devices, and may be read anywhere.
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>
#include <devmgr/persistent_map.h>
#include <devmgr/status_types.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "claim/pod_plan.h"
#include "claim/release.h"
#include "device/driver_health.h"
#include "device/inventory.h"
#include "state/state.h"

namespace devmgr::view {

using ClaimAtDriver = std::pair<ClaimUid, std::string>;

/// What drivers are being asked about claims.
struct Calls {
  struct Unanswered {
    bool prepare = true;  ///< What is under way.
    /// Unix time; nothing: the call waits for others to end.
    std::optional<std::int64_t> since_ms;
    std::uint64_t call = 0;  ///< Its number, which claims may share.
  };
  struct Error {
    std::string driver;
    absl::Status status;
    /// The driver is not to blame: its answer, or that it is to be asked,
    /// could not be recorded.
    bool is_of_ledger = false;
  };
  PersistentMap<ClaimAtDriver, Unanswered> unanswered;
  /// How the last call failed; there is none of one that succeeded since.
  PersistentMap<ClaimAtDriver, Error> errors;
  /// Unprepare calls that failed, of what is owed; the ledger's number may be
  /// behind.
  PersistentMap<ClaimAtDriver, std::uint32_t> attempts;
};

/// What is known of pods beyond the ledger.
struct Pods {
  /// Why a pod is not Ready, or why one that is Ready is refused.
  PersistentMap<PodUid, Verdict> notes;
  /// Operations that wait for drivers, of pods that have any.
  PersistentMap<PodUid, int> asking;
};

/// A resource as its plugin tells of it.
struct Resource {
  device::EndpointState state = device::EndpointState::kUnknown;
  std::int64_t since_ms = 0;  ///< Of the state.
  device::Figures figures;
  /// In natural order of IDs.
  device::InventoryDevices devices;
  /// How many of them are for pods of this node, where a control plane has the
  /// others.
  std::optional<std::int64_t> local_set = {};
};
using Resources = PersistentMap<ResourceName, Resource>;

/// What drivers say of the health of their devices.
struct DriversHealth {
  /// Of drivers that tell.
  PersistentMap<std::string, device::DriverHealth> drivers;
  /// Devices of which an earlier process heard what counts no more, and why:
  /// Unknown until their drivers report them.
  PersistentMap<state::DeviceKey, device::EffectiveHealth> over;
  /// Of pods that are being released.
  PersistentMap<PodUid, std::vector<ContainerResourceStatus>> last;
};

/// What stays the same as long as a manager lives.
/// By driver and pool: what makes a pool invalid.
using PoolProblems = std::map<std::pair<std::string, std::string>, std::string>;

struct Terms {
  std::string boot_id;
  std::string node_name;
  bool health = true;           ///< PodInfo::allocated_resources is filled in,
  bool health_messages = true;  ///< with texts.
  claim::PlanOptions plan_options;
  claim::DebtRules debt_rules;
  HardwareOptions hardware = {};
  /// Of the pools that this node reaches. Called on any thread; null: none.
  std::function<PoolProblems(const ObjectSnapshot&)> pool_problems = nullptr;
};

struct Moment {
  /// Null: of a ledger that no manager has open; then only the state is filled
  /// in.
  std::shared_ptr<const Terms> terms;
  state::State state;
  std::shared_ptr<const ObjectSnapshot> objects;  ///< Null: none.
  Pods pods;
  Calls calls;
  Resources resources;
  DriversHealth health;
  std::int64_t steady_ms = 0;  ///< The moment, by the clock of leases.
  /// The machine's NUMA nodes, without devices; null: not known.
  std::shared_ptr<const NumaInfo> numa;
  /// What the hints of pods came to.
  PersistentMap<PodUid, std::shared_ptr<const PodAlignmentInfo>> alignments;
};

}  // namespace devmgr::view
