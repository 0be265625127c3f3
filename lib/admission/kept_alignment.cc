// SPDX-License-Identifier: Apache-2.0
#include "admission/kept_alignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "api/quote.h"

namespace devmgr::admission {
namespace {

using device::Shortage;

std::string NodesText(NumaMask nodes) {
  return fmt::format("NUMA node{} {}", nodes.Count() == 1 ? "" : "s",
                     fmt::join(nodes.Nodes(), ","));
}

bool Touches(const std::vector<std::int64_t>& on, NumaMask nodes) {
  return std::any_of(on.begin(), on.end(),
                     [&](std::int64_t node) { return nodes.Contains(node); });
}

/// Null: it has no opinion on nodes, since no device is on any.
const device::Inventory* FindPlaced(const claim::PluginDevices& devices,
                                    const ResourceName& resource) {
  const auto found = devices.inventories.find(resource);
  if (found == devices.inventories.end()) return nullptr;
  const auto& all = found->second.devices();
  const bool is_placed =
      std::any_of(all.begin(), all.end(), [](const auto& known) {
        return known.listed && !known.device.numa_nodes.empty();
      });
  return is_placed ? &found->second : nullptr;
}

Shortage NotAligned(const claim::PluginDevices& devices,
                    const device::Reservation& planned,
                    const PodAlignmentInfo& alignment, NumaMask nodes) {
  Shortage shortage{
      .kind = Shortage::Kind::kNotAligned,
      .container = planned.container,
      .resource = planned.resource,
      .state = device::EndpointState::kLive,
      .requested = static_cast<std::int64_t>(planned.devices.size()),
      .available = FreeDevicesOn(devices, planned.resource, nodes)};
  shortage.pod = planned.pod;
  const auto* inventory = FindPlaced(devices, planned.resource);
  for (const auto& known : inventory->devices()) {
    if (!known.listed || !Touches(known.device.numa_nodes, nodes)) continue;
    ++shortage.listed;
    if (!known.Usable() && shortage.devices.size() < Shortage::kMaxNames) {
      shortage.devices.push_back(known.device.id);
    }
    const auto* holder =
        devices.reservations.HolderOf(planned.resource, known.device.id);
    if (holder == nullptr || holder->pod == planned.pod ||
        shortage.holders.size() == Shortage::kMaxNames ||
        std::count(shortage.holders.begin(), shortage.holders.end(),
                   holder->pod) > 0) {
      continue;
    }
    shortage.holders.push_back(holder->pod);
  }
  shortage.reason = fmt::format("topology policy \"{}\": {}",
                                TopologyPolicyName(alignment.options.policy),
                                NodesText(nodes));
  return shortage;
}

}  // namespace

ContainerMasks MasksOf(const PodAlignmentInfo* alignment) {
  ContainerMasks masks;
  if (alignment == nullptr) return masks;
  for (const ContainerAlignmentInfo& one : alignment->containers) {
    if (!one.admitted || !one.merged.nodes.has_value()) continue;
    masks[one.container] = *one.merged.nodes;
  }
  return masks;
}

std::optional<NumaMask> RequiredNodes(const PodAlignmentInfo* alignment,
                                      const ContainerName& container) {
  const ContainerMasks masks = MasksOf(alignment);
  const auto found = masks.find(container);
  if (found == masks.end() ||
      alignment->options.policy == TopologyPolicy::kBestEffort) {
    return std::nullopt;
  }
  return found->second;
}

std::string RequiredNodesText(const PodAlignmentInfo* alignment,
                              const ContainerName& container) {
  const auto nodes = RequiredNodes(alignment, container);
  if (!nodes) return "";
  return fmt::format(" on {}, to which container {} is aligned",
                     NodesText(*nodes), api::Quoted(container.value));
}

std::int64_t FreeDevicesOn(const claim::PluginDevices& devices,
                           const ResourceName& resource, NumaMask nodes) {
  const std::int64_t free = claim::FreeDevices(devices, resource);
  const device::Inventory* inventory = FindPlaced(devices, resource);
  if (inventory == nullptr) return free;
  const auto& all = inventory->devices();
  const auto there =
      std::count_if(all.begin(), all.end(), [&](const auto& one) {
        return one.Usable() && Touches(one.device.numa_nodes, nodes) &&
               devices.reservations.HolderOf(resource, one.device.id) ==
                   nullptr;
      });
  return std::min<std::int64_t>(free, there);
}

device::PodPlan PlanAsAligned(const claim::PluginDevices& devices,
                              claim::WantedDevices wanted,
                              const PodAlignmentInfo& alignment) {
  const ContainerMasks masks = MasksOf(&alignment);
  for (const device::DeviceNeed& need : wanted.needs) {
    const auto mask = masks.find(need.container);
    if (mask == masks.end()) continue;
    wanted.masks[{need.container, need.resource}] = mask->second.Nodes();
  }
  device::PodPlan plan = claim::PlanDevices(devices, wanted);
  std::vector<Shortage> shortages;
  for (const device::Reservation& planned : plan.reservations) {
    const auto nodes = RequiredNodes(&alignment, planned.container);
    if (!nodes || FindPlaced(devices, planned.resource) == nullptr) continue;
    const bool is_there = std::all_of(
        planned.devices.begin(), planned.devices.end(),
        [&](const auto& one) { return Touches(one.numa_nodes, *nodes); });
    if (is_there) continue;
    shortages.push_back(NotAligned(devices, planned, alignment, *nodes));
  }
  if (shortages.empty()) return plan;
  device::PodPlan refused;
  refused.shortages = std::move(shortages);
  return refused;
}

}  // namespace devmgr::admission
