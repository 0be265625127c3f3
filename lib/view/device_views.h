// SPDX-License-Identifier: Apache-2.0
//
// Devices, resources and device classes as people see them: what the ledger
// holds of them, what plugins and drivers say, and what classes and slices add.
// Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <string>
#include <string_view>
#include <vector>

#include "state/state.h"
#include "view/moment.h"

namespace devmgr::view {

std::vector<DeviceInfo> DevicesOf(const Moment& moment);
std::vector<ResourceInfo> ResourcesOf(const Moment& moment);
std::vector<DeviceClassInfo> DeviceClassesOf(const ObjectSnapshot& objects);
/// Devices of plugins that work, by resource.
std::vector<ResourceDevices> AllocatableOf(const Moment& moment);

/// The node that a published device is on, by its slice, or by itself where the
/// slice leaves that to its devices. Empty: not on one node by its name.
std::string_view NodeOf(const ResourceSlice& slice, const SliceDevice& device);

/// Adds what slices publish to the devices that claims hold. `node_name`: only
/// devices of that node, and those of all nodes; empty: every device.
void AddPublished(const ObjectSnapshot& objects, const std::string& node_name,
                  std::vector<DeviceInfo>* devices);

/// Adds the names that classes have, and what pods hold through them.
void AddClasses(const ObjectSnapshot& objects, const state::State& state,
                std::vector<ResourceInfo>* resources);

}  // namespace devmgr::view
