// SPDX-License-Identifier: Apache-2.0
//
// The NUMA nodes of a machine, out of what the kernel shows below
// /sys/devices/system/node.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/sysfs.h"
#include "topology/merge.h"
#include "topology/numa_distances.h"
#include "topology/policy.h"

namespace devmgr::topology {

struct NumaNode {
  int id = 0;                      ///< 0 to 63.
  std::vector<std::int64_t> cpus;  ///< Ascending; empty: it has memory only.
  std::optional<std::uint64_t> memory_bytes;  ///< No value: not known.
  /// How many huge pages there are, by their size in KiB.
  std::map<std::uint64_t, std::uint64_t> hugepages;
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

struct NumaTree {
  std::vector<NumaNode> nodes;  ///< Ascending by id; one at least.
  /// Of all pairs of nodes; no value: not known, and `distance_problem` says
  /// why.
  std::optional<NumaDistances> distances;
  std::string distance_problem;
  /// The kernel has no NUMA nodes: the one node stands for the machine.
  bool synthetic = false;
  /// For people: what is odd and was put up with. Bounded.
  std::vector<std::string> warnings;

  NumaMask mask() const;
  std::vector<std::int64_t> ids() const;
};

/// Reads the nodes that are online. Without any, the machine is one node 0 with
/// all CPUs.
///   InvalidArgument   a list of nodes or CPUs is none, the files contradict
///                     each other, or a node has an id above 63; the message
///                     names the file
///   any other         a file is there and cannot be read
absl::StatusOr<NumaTree> ReadNumaTree(const SysfsFiles& files);

/// What hints are merged for, or why `options` cannot be followed on this
/// machine.
///   FailedPrecondition   it has more nodes than `options` allow, or closest
///                        nodes are to be preferred and distances are not known
absl::StatusOr<NumaMachine> MachineOf(const NumaTree& tree,
                                      const Options& options);

/// The node of a PCI device. No value: the kernel does not know it, which -1
/// says, and the device has no topology then.
///   NotFound          there is no such device
///   InvalidArgument   `address` is none, or the file has no number of a node
///                     of `tree`
absl::StatusOr<std::optional<int>> NumaNodeOfPciDevice(const SysfsFiles& files,
                                                       std::string_view address,
                                                       const NumaTree& tree);

/// Where a device is shown to be: on a machine of one node it is there, even
/// when the kernel does not say so. For display only.
std::optional<int> ShownNode(std::optional<int> node, const NumaTree& tree);

}  // namespace devmgr::topology
