// SPDX-License-Identifier: Apache-2.0
//
// What device classes and resource slices add to what is shown of devices and
// resources. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <string>
#include <vector>

#include "state/state.h"

namespace devmgr::resources {

std::vector<DeviceClassInfo> DeviceClassesOf(const ObjectSnapshot& objects);

/// Adds what slices publish to the devices that claims hold. `node_name`: only
/// slices of that node, and those of all nodes; empty: every slice.
void AddPublished(const ObjectSnapshot& objects, const std::string& node_name,
                  std::vector<DeviceInfo>* devices);

/// Adds the names that classes have, and what pods hold through them.
void AddClasses(const ObjectSnapshot& objects, const state::State& state,
                std::vector<ResourceInfo>* resources);

}  // namespace devmgr::resources
