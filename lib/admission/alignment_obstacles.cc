// SPDX-License-Identifier: Apache-2.0
#include "admission/alignment_obstacles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/quote.h"
#include "common/counted.h"

namespace devmgr::admission {
namespace {

using device::Shortage;
using topology::ResourceHints;

/// Whether the list has a preferred hint of just these nodes, or of any.
bool Prefers(const ResourceHints& list, NumaMask nodes) {
  if (!list.hints) return true;
  return std::any_of(
      list.hints->begin(), list.hints->end(), [&](const TopologyHint& hint) {
        return hint.preferred && (!hint.nodes || *hint.nodes == nodes);
      });
}

/// The sets of nodes that are preferred by all lists.
std::vector<NumaMask> PreferredByAll(const std::vector<ResourceHints>& lists,
                                     bool single) {
  std::vector<NumaMask> masks;
  for (const ResourceHints& list : lists) {
    if (!list.hints || list.hints->empty()) continue;
    for (const TopologyHint& hint : *list.hints) {
      if (!hint.preferred || !hint.nodes) continue;
      if (single && hint.nodes->Count() != 1) continue;
      if (std::all_of(lists.begin(), lists.end(), [&](const auto& other) {
            return Prefers(other, *hint.nodes);
          })) {
        masks.push_back(*hint.nodes);
      }
    }
    break;
  }
  // Of several that lack as much the first one counts, whatever the order of
  // the hints.
  std::sort(masks.begin(), masks.end(), [](NumaMask a, NumaMask b) {
    return std::pair(a.Count(), a.bits()) < std::pair(b.Count(), b.bits());
  });
  return masks;
}

bool Touches(const device::InventoryDevice& known, NumaMask nodes) {
  const auto& on = known.device.numa_nodes;
  return std::any_of(on.begin(), on.end(),
                     [&](std::int64_t node) { return nodes.Contains(node); });
}

/// One resource on some nodes, as it is now.
struct OnNodes {
  std::int64_t requested = 0;
  std::int64_t available = 0;
  std::set<PodUid> holders;
  std::vector<DeviceId> broken;
  std::int64_t listed = 0;

  std::int64_t Missing() const {
    return std::max<std::int64_t>(requested - available, 0);
  }
};

class Obstacles {
 public:
  Obstacles(const claim::PluginDevices& devices,
            const claim::WantedDevices& wanted, const AlignmentRules& rules,
            const PodAligner& now)
      : devices_(devices),
        wanted_(wanted),
        rules_(rules),
        now_(now),
        container_(now.alignment().containers.back().container) {}

  std::vector<Shortage> Of(const std::vector<NumaMask>& masks) const {
    NumaMask best = rules_.machine.nodes;
    std::int64_t least = -1;
    for (const NumaMask mask : masks) {
      std::int64_t missing = 0;
      for (const auto& [resource, count] : now_.WantedBy(container_)) {
        missing += Look(resource, count, mask).Missing();
      }
      // Where nothing is missing, something else is in the way.
      if (missing == 0 || (least >= 0 && missing >= least)) continue;
      least = missing;
      best = mask;
    }
    std::vector<Shortage> shortages;
    for (const auto& [resource, count] : now_.WantedBy(container_)) {
      const OnNodes there = Look(resource, count, best);
      if (least > 0 && there.Missing() == 0) continue;
      shortages.push_back(ShortageOf(resource, there, best));
    }
    return shortages;
  }

 private:
  OnNodes Look(const ResourceName& resource, std::int64_t count,
               NumaMask nodes) const {
    OnNodes there{.requested = count};
    const auto inventory = devices_.inventories.find(resource);
    if (inventory == devices_.inventories.end()) return there;
    const auto& held = devices_.reservations.Held(resource);
    const PodAligner::Taken taken = now_.TakenBefore(resource);
    for (const device::InventoryDevice& known : inventory->second.devices()) {
      if (!known.listed || !Touches(known, nodes)) continue;
      ++there.listed;
      const auto holder = held.find(known.device.id);
      const bool is_held = holder != held.end();
      if (is_held && there.holders.size() < Shortage::kMaxNames) {
        there.holders.insert(holder->second.pod);
      }
      if (!known.Usable()) {
        if (there.broken.size() < Shortage::kMaxNames) {
          there.broken.push_back(known.device.id);
        }
        continue;
      }
      const bool is_taken = taken.planned.contains(known.device.id) &&
                            !taken.reusable.contains(known.device.id);
      if (!is_held && !is_taken) ++there.available;
    }
    return there;
  }

  Shortage ShortageOf(const ResourceName& resource, const OnNodes& there,
                      NumaMask nodes) const {
    Shortage shortage{.kind = Shortage::Kind::kNotAligned,
                      .container = container_,
                      .resource = resource,
                      .state = device::EndpointState::kLive,
                      .requested = there.requested,
                      .available = there.available};
    shortage.holders.assign(there.holders.begin(), there.holders.end());
    std::erase(shortage.holders, wanted_.pod);
    shortage.devices = there.broken;
    shortage.listed = there.listed;
    shortage.pod = wanted_.pod;
    shortage.reason = fmt::format("topology policy \"{}\": NUMA node{} {}",
                                  TopologyPolicyName(rules_.options.policy),
                                  nodes.Count() == 1 ? "" : "s",
                                  fmt::join(nodes.Nodes(), ","));
    return shortage;
  }

  const claim::PluginDevices& devices_;
  const claim::WantedDevices& wanted_;
  const AlignmentRules& rules_;
  const PodAligner& now_;
  const ContainerName container_;
};

}  // namespace

std::vector<Shortage> ObstaclesOf(const claim::PluginDevices& devices,
                                  const claim::WantedDevices& wanted,
                                  const AlignmentRules& rules,
                                  const PodAligner& now,
                                  const PodAligner& possible) {
  const auto& refused = now.alignment().containers.back();
  std::vector<NumaMask> masks;
  for (const auto& one : possible.alignment().containers) {
    if (one.container != refused.container) continue;
    masks = PreferredByAll(
        one.lists, rules.options.policy == topology::Policy::kSingleNumaNode);
  }
  return Obstacles(devices, wanted, rules, now).Of(masks);
}

}  // namespace devmgr::admission
