// SPDX-License-Identifier: Apache-2.0
//
// What holds of each NUMA tree that was read, whatever the files were.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "topology/numa_tree.h"

namespace devmgr::topology {

/// The first sentence that is not true of `tree`; empty when all are.
inline std::string BrokenInvariant(const NumaTree& tree) {
  const auto& nodes = tree.nodes;
  if (nodes.empty() || nodes.size() > NumaMask::kMaxNodes) {
    return "a machine has 1 to 64 nodes";
  }
  const auto by_id = [](const NumaNode& a, const NumaNode& b) {
    return a.id < b.id;
  };
  if (!std::is_sorted(nodes.begin(), nodes.end(), by_id)) {
    return "nodes are in order";
  }
  if (static_cast<std::size_t>(tree.mask().Count()) != nodes.size()) {
    return "each id is there once";
  }
  if (tree.synthetic && (nodes.size() != 1 || nodes[0].id != 0)) {
    return "a machine without nodes is node 0";
  }
  std::set<std::int64_t> cpus;
  for (const NumaNode& node : nodes) {
    if (!std::is_sorted(node.cpus.begin(), node.cpus.end())) {
      return "CPUs are in order";
    }
    for (const std::int64_t cpu : node.cpus) {
      if (cpu < 0 || !cpus.insert(cpu).second) return "a CPU is on one node";
    }
  }
  if (tree.distances.has_value() != tree.distance_problem.empty()) {
    return "distances are known, or it is said why not";
  }
  if (tree.warnings.size() > 32) return "warnings are bounded";
  if (!tree.distances) return "";
  for (const NumaNode& from : nodes) {
    for (const NumaNode& to : nodes) {
      const auto distance = tree.distances->Of(from.id, to.id);
      if (distance < 10 || distance > 255) return "a distance is 10 to 255";
    }
  }
  return "";
}

}  // namespace devmgr::topology
