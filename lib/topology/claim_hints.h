// SPDX-License-Identifier: Apache-2.0
//
// Hints of the devices that a claim asks for. The kubelet's DRA manager has
// none: where a scheduler allocates they say where what was allocated is, and
// where this node allocates they take part in the choice.
#pragma once

#include <devmgr/objects.h>

#include <cstdint>
#include <vector>

#include "topology/hints.h"
#include "topology/resource_hints.h"

namespace devmgr::topology {

/// The attribute of a device that has its NUMA node, or a list of nodes with
/// the device's own node first.
inline constexpr char kNumaNodeAttribute[] = "resource.kubernetes.io/numaNode";

/// Ascending, each once. Empty when the device has no such attribute, or one
/// that is no number of a node: the attribute is a driver's, and a device that
/// misuses it is on no node.
NumaNodes NumaNodesOf(const SliceDevice& device);

/// A device that a request of a claim can be satisfied with, whether it is free
/// or not.
struct ClaimDevice {
  NumaNodes nodes;         ///< As of NumaNodesOf.
  bool free = false;       ///< No claim holds it.
  bool allocated = false;  ///< The claim itself holds it.
};

/// Hints for `count` of `devices`. A claim that is allocated gets the hints of
/// exactly what it holds, whatever `count` is. No opinion when no device is on
/// a node, or nothing is asked for.
Hints HintsOfClaim(const std::vector<ClaimDevice>& devices, std::int64_t count,
                   const NumaNodes& machine_nodes,
                   const HintLimits& limits = {});

}  // namespace devmgr::topology
