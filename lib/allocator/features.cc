// SPDX-License-Identifier: Apache-2.0
#include "allocator/features.h"

#include <initializer_list>
#include <utility>

namespace devmgr::allocator {

Features FeaturesOf(const std::map<std::string, bool>& gates) {
  Features features;
  const std::initializer_list<std::pair<const char*, bool*>> known = {
      {"DRAAdminAccess", &features.admin_access},
      {"DRADeviceCompatibilityGroups", &features.compatibility_groups},
      {"DRAConsumableCapacity", &features.consumable_capacity},
      {"DRADerivedAttributes", &features.derived_attributes},
      {"DRADeviceTaints", &features.device_taints},
      {"DRAListTypeAttributes", &features.list_type_attributes},
      {"DRAOptionalNodeOperations", &features.optional_node_operations},
      {"DRAPartitionableDevices", &features.partitionable_devices},
      {"DRAPrioritizedList", &features.prioritized_list},
  };
  for (const auto& [name, feature] : known) {
    const auto gate = gates.find(name);
    if (gate != gates.end()) *feature = gate->second;
  }
  // Upstream's allocator has one feature for both.
  for (const char* name :
       {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"}) {
    const auto gate = gates.find(name);
    if (gate != gates.end() && !gate->second) {
      features.device_binding_and_status = false;
    }
  }
  return features;
}

}  // namespace devmgr::allocator
