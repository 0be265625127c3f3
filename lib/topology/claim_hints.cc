// SPDX-License-Identifier: Apache-2.0
#include "topology/claim_hints.h"

#include <devmgr/topology.h>

#include <algorithm>
#include <variant>

#include "topology/device_groups.h"

namespace devmgr::topology {

NumaNodes NumaNodesOf(const SliceDevice& device) {
  const DeviceAttribute* attribute = device.attributes.Find(kNumaNodeAttribute);
  if (attribute == nullptr) return {};
  NumaNodes nodes;
  if (const auto* one = std::get_if<std::int64_t>(attribute)) {
    nodes = {*one};
  } else if (const auto* several =
                 std::get_if<RareVector<std::int64_t>>(attribute)) {
    nodes = several->vector();
  }
  const auto is_none = [](std::int64_t node) {
    return node < 0 || node >= NumaMask::kMaxNodes;
  };
  if (std::any_of(nodes.begin(), nodes.end(), is_none)) return {};
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Hints HintsOfClaim(const std::vector<ClaimDevice>& devices, std::int64_t count,
                   const NumaNodes& machine_nodes, const HintLimits& limits) {
  const auto allocated =
      std::count_if(devices.begin(), devices.end(),
                    [](const ClaimDevice& device) { return device.allocated; });
  if (allocated > 0) count = allocated;
  const bool on_a_node = std::any_of(
      devices.begin(), devices.end(),
      [](const ClaimDevice& device) { return !device.nodes.empty(); });
  if (count <= 0 || !on_a_node) return {};
  DeviceGroups groups;
  for (const ClaimDevice& device : devices) {
    DeviceGroup& group = groups.On(device.nodes);
    ++group.known;
    if (allocated > 0 ? device.allocated : device.free) ++group.free;
  }
  return GenerateHints(groups.Take(), count, machine_nodes, limits);
}

}  // namespace devmgr::topology
