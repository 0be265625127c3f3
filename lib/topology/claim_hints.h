// SPDX-License-Identifier: Apache-2.0
//
// Hints of the devices that a claim asks for. The kubelet's DRA manager has
// none: where a scheduler allocates they say where what was allocated is, and
// where this node allocates they take part in the choice.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>
#include <devmgr/topology.h>

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// What came of a try to allocate claims with devices on some nodes only.
enum class ClaimFit {
  kNone,     ///< There are not enough.
  kOnNodes,  ///< There are, and some of them are on a node.
  kNowhere,  ///< There are, and none of them is on any node.
};

/// Claims that are yet to be allocated. An error of a try ends the search.
struct ClaimChoice {
  using Try = std::function<absl::StatusOr<ClaimFit>(NumaMask nodes)>;
  Try fits;      ///< By what is free now.
  Try could;     ///< By what there is, held or not.
  NumaMask all;  ///< The nodes that have devices.
};

/// Sets of nodes that are tried, one after the other.
inline constexpr std::size_t kMaxClaimTries = 256;

/// Hints of what could be allocated: the smallest sets of nodes whose devices
/// suffice now, and `all` of them. They are preferred when no smaller set would
/// suffice if no claim held a device. No opinion when the devices are on no
/// node. Sizes are tried from 1 up, sets of one size by their number.
///   any error   that of a try
absl::StatusOr<Hints> HintsOfChoice(const ClaimChoice& choice,
                                    std::size_t tries = kMaxClaimTries);

}  // namespace devmgr::topology
