// SPDX-License-Identifier: Apache-2.0
//
// One hint out of the hints of several resources: what the policies of the
// kubelet's pkg/kubelet/cm/topologymanager answer, found without a walk over
// all combinations. Why that is possible stands in README.md beside this file.
#pragma once

#include <devmgr/topology.h>

#include <cstdint>
#include <string>
#include <vector>

#include "topology/numa_distances.h"
#include "topology/policy.h"

namespace devmgr::topology {

/// The hints that one provider has for one resource.
struct ResourceHints {
  std::string provider;
  std::string resource;
  TopologyHintList hints;
  /// The search for hints ended at a limit: there may be more of them.
  bool truncated = false;
  /// Of a claim: this node has allocated it, so that its hints count as those
  /// of device plugins do.
  bool binding = false;
};

/// The NUMA nodes of a machine.
struct NumaMachine {
  NumaMask nodes;
  /// Of all pairs of `nodes`, for Options::prefer_closest; unused without it.
  NumaDistances distances = {};
};

struct MergeLimits {
  /// One step is a mask of one list laid over those of the lists before it.
  std::uint64_t steps = 2'000'000;
};

struct MergedHint {
  /// The best hint. Without nodes under kNone, and under kSingleNumaNode where
  /// the kubelet has none: all nodes together, or no common one.
  TopologyHint hint;
  bool admitted = true;
  /// No other combination of the hints that were given is better. Not so when
  /// the limit of steps was reached; `hint` is then the best that was met, and
  /// is never preferred: which preferred hints there are, and so whether
  /// kRestricted and kSingleNumaNode admit, is always known.
  bool proven = true;
  std::uint64_t steps = 0;
  /// Resources whose hints were truncated, in order, where that may have been
  /// why the result is not preferred.
  std::vector<std::string> truncated = {};
};

/// Merges the hints of all resources. Neither the order of `lists` nor that of
/// the hints within a list counts.
MergedHint Merge(const Options& options, const NumaMachine& machine,
                 const std::vector<ResourceHints>& lists,
                 const MergeLimits& limits = {});

/// What the kubelet says of a pod that is not admitted, and the reason that the
/// pod gets.
inline constexpr char kAffinityReason[] = "TopologyAffinityError";
inline constexpr char kAffinityText[] =
    "Resources cannot be allocated with Topology locality";

/// For people, why `merged` is not admitted: the resources without a possible
/// set of nodes, or those whose preferred nodes have nothing in common, and
/// those whose hints were cut. Bounded.
std::string RefusalText(const Options& options,
                        const std::vector<ResourceHints>& lists,
                        const MergedHint& merged);

}  // namespace devmgr::topology
