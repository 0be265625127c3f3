// SPDX-License-Identifier: Apache-2.0
//
// The machine's NUMA nodes, and how pods are aligned to them.
#include <devmgr/topology.h>

#include <memory>
#include <string>
#include <utility>

#include "admission/claim_alignment.h"
#include "common/status.h"
#include "common/sysfs.h"
#include "manager/manager.h"
#include "topology/numa_tree.h"

namespace devmgr::manager {
namespace {

NumaInfo InfoOf(const topology::NumaTree& tree) {
  NumaInfo info;
  info.synthetic = tree.synthetic;
  info.problems = tree.warnings;
  if (!tree.distances && !tree.distance_problem.empty()) {
    info.problems.push_back("distances of NUMA nodes are not known: " +
                            tree.distance_problem);
  }
  for (const topology::NumaNode& node : tree.nodes) {
    NumaNodeInfo& shown = info.nodes.emplace_back();
    shown.id = node.id;
    shown.cpus = node.cpus;
    shown.memory_bytes = node.memory_bytes;
    if (!tree.distances) continue;
    for (const topology::NumaNode& other : tree.nodes) {
      shown.distances.push_back(tree.distances->Of(node.id, other.id));
    }
  }
  return info;
}

}  // namespace

absl::Status ReadNuma(ManagerParts* parts) {
  const TopologyOptions& options = parts->options.topology;
  const auto files = HostSysfs(parts->options.sysfs_dir.string());
  const auto tree = topology::ReadNumaTree(*files);
  const bool is_needed = options.policy != TopologyPolicy::kNone;
  if (!tree.ok()) {
    if (is_needed) {
      return WithContext(tree.status(), "topology policy \"{}\"",
                         TopologyPolicyName(options.policy));
    }
    parts->numa.problems = {MessageOf(tree.status())};
    return absl::OkStatus();
  }
  parts->numa = InfoOf(*tree);
  parts->numa.options = options;
  // What plugins say of a machine without NUMA nodes is theirs.
  if (!tree->synthetic) parts->numa_nodes = tree->ids();
  if (!is_needed) return absl::OkStatus();
  auto machine = topology::MachineOf(*tree, options);
  if (!machine.ok()) return machine.status();
  admission::AlignmentRules rules{options, *std::move(machine)};
  rules.claims_count = parts->options.policies.authority == Authority::kNode;
  parts->alignment =
      std::make_shared<const admission::AlignmentRules>(std::move(rules));
  return absl::OkStatus();
}

void Manager::ReportNuma() {
  // Without a policy it only matters whether nodes are known at all.
  if (alignment_ == nullptr && !numa_->nodes.empty()) return;
  for (const std::string& problem : numa_->problems) {
    events_.Add(true, "NumaProblem", "Node", {"", options_.node_name}, problem);
  }
}

void Manager::AddAlignment(pods::DeviceAdmission::Parts* parts) {
  parts->alignment = alignment_;
  if (alignment_ == nullptr) return;
  parts->hint_providers = host_.topology_providers;
  parts->claim_hints = [this](const Pod& pod, const ContainerName& container,
                              const ObjectSnapshot* proposed) {
    const auto now = objects_->Current();
    const auto is_local = [&](const ResourceClaim& claim) {
      return admission::IsAllocatedHere(
          claim, state_, proposed != nullptr ? now.get() : nullptr);
    };
    return admission::HintsOfClaims(
        pod, container, proposed != nullptr ? *proposed : *now, plan_options_,
        alignment_->machine.nodes, is_local);
  };
}

}  // namespace devmgr::manager
