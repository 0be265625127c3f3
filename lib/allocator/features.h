// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace devmgr::allocator {

/// Feature gates that change what is allocated, under upstream's names without
/// `DRA`. DeviceBindingAndStatus stands for the two gates
/// DRADeviceBindingConditions and DRAResourceClaimDeviceStatus.
struct Features {
  bool admin_access = true;
  bool compatibility_groups = true;
  bool consumable_capacity = true;
  bool derived_attributes = false;  ///< Alpha.
  bool device_binding_and_status = true;
  bool device_taints = true;
  bool list_type_attributes = true;
  bool optional_node_operations = true;
  bool partitionable_devices = true;
  bool prioritized_list = true;
  friend bool operator==(const Features&, const Features&) = default;
};

/// By the names of the gates. Other names are passed over.
Features FeaturesOf(const std::map<std::string, bool>& gates);

}  // namespace devmgr::allocator
