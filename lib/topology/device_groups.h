// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "topology/hints.h"

namespace devmgr::topology {

/// Devices by the nodes they are on.
class DeviceGroups {
 public:
  DeviceGroup& On(const NumaNodes& nodes) {
    DeviceGroup& group = groups_[nodes];
    group.nodes = nodes;
    return group;
  }

  std::vector<DeviceGroup> Take() {
    std::vector<DeviceGroup> groups;
    for (auto& [nodes, group] : groups_) groups.push_back(std::move(group));
    return groups;
  }

 private:
  std::map<NumaNodes, DeviceGroup> groups_;
};

}  // namespace devmgr::topology
