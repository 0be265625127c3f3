// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/options.h>
#include <devmgr/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/aligned_plan.h"
#include "admission/device_verdict.h"
#include "admission/wait_queue.h"
#include "claim/device_plan.h"
#include "claim/pod_plan.h"
#include "control/eviction_plan.h"
#include "control/quota.h"
#include "device/inventory.h"
#include "device/reservation.h"
#include "state/state.h"

namespace devmgr::simulation {

/// What a manager decides by, at one moment: values that later changes do not
/// touch.
struct NodeMoment {
  state::State state;
  /// As admission sees them, and without what this node decided about claims.
  ObjectSnapshot objects;
  ObjectSnapshot of_source;
  device::InventoryMap inventories;
  /// On its way to the ledger.
  std::map<PodUid, std::vector<device::Reservation>> intended;
  std::optional<admission::WaitQueue> queue{std::in_place,
                                            admission::WaitQueueOptions()};
  std::set<std::string> drivers;  ///< That are registered.
  /// Which hardware the devices of plugins are, as far as it is known.
  claim::PluginHardware plugin_hardware;
  HardwareOptions hardware;  ///< For the devices of drivers.
  /// Claims that pods have to leave, and devices of drivers that no claim gets
  /// because they do not work. Only where this node allocates.
  control::EvictionPlan evictions;
  std::set<state::DeviceKey> withheld;
  /// Plugins that would be asked which devices they prefer.
  std::set<ResourceName> with_preference;

  std::string node_name;
  std::string boot_id;
  std::vector<std::int64_t> numa_nodes;  ///< Ascending; empty: not known.
  /// How pods are aligned to them. Null: they are not.
  std::shared_ptr<const admission::AlignmentRules> alignment;
  /// Names of an embedder's providers of hints, which are not asked.
  std::vector<std::string> hint_providers;
  bool allocates = false;  ///< This node allocates claims.
  std::map<std::string, bool> feature_gates;
  control::QuotaRule quota_rule = control::QuotaRule::kStrict;
  /// But for `why_not_served` and `hardware_of`.
  claim::PlanOptions plan_options;
  admission::DevicePolicy policy;
  /// Under Authority::kSplit: so many devices of plugins are for pods of this
  /// node; none of resources that are missing.
  std::map<std::string, std::int64_t> local_sets;
  std::int64_t now_ms = 0;
  std::function<std::uint64_t()> random;  ///< For UIDs and names.
  /// Called before each pod and each step of a search, where a simulation gives
  /// way to decisions. Null: it does not.
  std::function<void()> pause;
};

}  // namespace devmgr::simulation
