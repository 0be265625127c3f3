// SPDX-License-Identifier: Apache-2.0
//
// Which sets of NUMA nodes could serve a request for devices of one resource.
// Follows the kubelet's pkg/kubelet/cm/devicemanager/topology_hints.go; what is
// different on machines with many nodes stands in README.md beside this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace devmgr::topology {

/// Numbers of NUMA nodes, ascending.
using NumaNodes = std::vector<std::int64_t>;

/// Devices of one resource that sit on the same nodes.
struct DeviceGroup {
  NumaNodes nodes;
  std::int64_t known = 0;     ///< Healthy or not, free or not.
  std::int64_t free = 0;      ///< Could be given out now.
  std::int64_t reusable = 0;  ///< Would be handed on; not among `free`.
};

struct Hint {
  NumaNodes nodes;
  /// It has as few nodes as the request would need on an empty machine.
  bool preferred = false;
  friend bool operator==(const Hint&, const Hint&) = default;
};

/// What a search may cost. Beyond it there are fewer hints, never none where
/// the request could be met.
struct HintLimits {
  std::size_t hints = 1024;
  std::uint64_t steps = 2'000'000;  ///< One is a look at one group.
};

struct Hints {
  /// No value: any node will do. Empty: no set of nodes could serve the
  /// request. Else by size, then in the order of the nodes.
  std::optional<std::vector<Hint>> hints;
  bool truncated = false;  ///< A limit was reached.
  std::uint64_t steps = 0;
};

/// Where up to this many nodes have devices of a resource, every set of these
/// nodes is tried, as at the kubelet.
inline constexpr std::size_t kFewNodes = 8;

/// Every set of nodes whose devices suffice for `count`, all reusable ones
/// among them. Nodes without devices, held and broken ones included, are in no
/// set. Where more than kFewNodes nodes have devices, only the smallest such
/// sets, and the set of all these nodes.
Hints GenerateHints(const std::vector<DeviceGroup>& groups, std::int64_t count,
                    const NumaNodes& machine_nodes,
                    const HintLimits& limits = {});

}  // namespace devmgr::topology
