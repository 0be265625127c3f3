// SPDX-License-Identifier: Apache-2.0
#include "admission/pod_aligner.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "topology/provider_hints.h"
#include "topology/resource_hints.h"

namespace devmgr::admission {
namespace {

using topology::AlignedContainer;
using topology::ResourceHints;

TopologyHintsInfo InfoOf(const ResourceHints& list, bool informative) {
  TopologyHintsInfo info;
  info.provider = list.provider;
  info.resource = list.resource;
  info.truncated = list.truncated;
  info.informative = informative;
  if (!list.hints) return info;
  info.count = list.hints->size();
  const auto shown = std::min(list.hints->size(), TopologyHintsInfo::kMaxHints);
  info.hints.emplace(list.hints->begin(),
                     list.hints->begin() + static_cast<std::ptrdiff_t>(shown));
  return info;
}

}  // namespace

absl::Status PodAligner::Align() {
  alignment_ = topology::AlignPod(
      input_.rules.options, input_.rules.machine, input_.containers,
      [this](const ContainerName& container,
             const std::vector<AlignedContainer>& before) {
        // After an error nothing counts.
        if (!failure_.ok()) return std::vector<ResourceHints>();
        before_.clear();
        if (!before.empty()) {
          claim::WantedDevices wanted = wanted_;
          wanted.masks = MasksOf(before);
          std::set<ContainerName> earlier;
          for (const AlignedContainer& one : before) {
            earlier.insert(one.container);
          }
          std::erase_if(wanted.needs, [&](const device::DeviceNeed& need) {
            return !earlier.contains(need.container);
          });
          before_ = claim::PlanDevices(devices_, wanted).reservations;
        }
        return HintsFor(container, before);
      });
  return failure_;
}

std::vector<ResourceHints> PodAligner::HintsFor(
    const ContainerName& container,
    const std::vector<AlignedContainer>& before) {
  std::vector<ResourceHints> lists;
  AddDeviceHints(container, &lists);
  const auto add = [&](absl::StatusOr<std::vector<ResourceHints>> more) {
    failure_.Update(more.status());
    if (!more.ok()) return;
    std::move(more->begin(), more->end(), std::back_inserter(lists));
  };
  if (input_.providers) add(input_.providers(container));
  if (input_.choices) add(input_.choices(container, before));
  if (!failure_.ok()) return {};
  AddClaimHints(container, &lists);
  return lists;
}

std::map<ResourceName, std::int64_t> PodAligner::WantedBy(
    const ContainerName& container) const {
  if (IsByPod()) return device::EffectiveNeeds(wanted_.needs);
  std::map<ResourceName, std::int64_t> wanted;
  for (const device::DeviceNeed& need : wanted_.needs) {
    if (need.container == container && need.count > 0) {
      wanted[need.resource] = need.count;
    }
  }
  return wanted;
}

PodAligner::Taken PodAligner::TakenBefore(const ResourceName& resource) const {
  Taken taken;
  for (const device::Reservation& planned : before_) {
    if (planned.resource != resource) continue;
    for (const device::HeldDevice& device : planned.devices) {
      taken.planned.insert(device.id);
      // As PlanPod hands them on.
      if (planned.kind == device::ContainerKind::kInit) {
        taken.reusable.insert(device.id);
      } else {
        taken.reusable.erase(device.id);
      }
    }
  }
  return taken;
}

void PodAligner::AddDeviceHints(const ContainerName& container,
                                std::vector<ResourceHints>* lists) const {
  const auto nodes = input_.rules.machine.nodes.Nodes();
  for (const auto& [resource, count] : WantedBy(container)) {
    const auto inventory = devices_.inventories.find(resource);
    if (inventory == devices_.inventories.end()) continue;
    Taken taken = TakenBefore(resource);
    const topology::HintRequest request{
        .pod = wanted_.pod,
        .container = IsByPod() ? ContainerName() : container,
        .resource = resource,
        .count = count,
        .reusable = std::move(taken.reusable),
        .planned = std::move(taken.planned)};
    lists->push_back(topology::ToResourceHints(
        topology::kDeviceProvider, resource,
        topology::HintsOf(inventory->second, devices_.reservations, request,
                          nodes)));
  }
}

void PodAligner::AddClaimHints(const ContainerName& container,
                               std::vector<ResourceHints>* lists) {
  if (!input_.claims) return;
  auto claims = input_.claims(container);
  if (!claims.ok()) {
    failure_ = claims.status();
    return;
  }
  const auto first_binding =
      std::stable_partition(claims->begin(), claims->end(),
                            [](const auto& list) { return !list.binding; });
  std::move(first_binding, claims->end(), std::back_inserter(*lists));
  claims->erase(first_binding, claims->end());
  if (claims->empty()) return;
  if (input_.rules.claims_count) {
    std::vector<ResourceHints> with = *lists;
    with.insert(with.end(), claims->begin(), claims->end());
    const topology::MergedHint merged =
        Merge(input_.rules.options, input_.rules.machine, with);
    if (merged.admitted && merged.hint.preferred) {
      *lists = std::move(with);
      return;
    }
  }
  informative_[container] = *std::move(claims);
}

DeviceMasks PodAligner::MasksOf(
    const std::vector<AlignedContainer>& containers) const {
  std::map<ContainerName, std::vector<std::int64_t>> nodes;
  for (const AlignedContainer& one : containers) {
    if (one.merged.hint.nodes) {
      nodes[one.container] = one.merged.hint.nodes->Nodes();
    }
  }
  DeviceMasks masks;
  for (const device::DeviceNeed& need : wanted_.needs) {
    const auto found = nodes.find(need.container);
    if (found == nodes.end()) continue;
    masks[{need.container, need.resource}] = found->second;
  }
  return masks;
}

DeviceMasks PodAligner::Masks() const { return MasksOf(alignment_.containers); }

PodAlignmentInfo PodAligner::Info() const {
  PodAlignmentInfo info;
  info.options = input_.rules.options;
  info.admitted = alignment_.admitted;
  for (const AlignedContainer& one : alignment_.containers) {
    ContainerAlignmentInfo& shown = info.containers.emplace_back();
    shown.container = one.container;
    shown.merged = one.merged.hint;
    shown.admitted = one.merged.admitted;
    shown.proven = one.merged.proven;
    for (const ResourceHints& list : one.lists) {
      shown.resources.push_back(InfoOf(list, false));
    }
    const auto more =
        informative_.find(IsByPod() ? ContainerName() : one.container);
    if (more == informative_.end()) continue;
    for (const ResourceHints& list : more->second) {
      shown.resources.push_back(InfoOf(list, true));
    }
  }
  return info;
}

}  // namespace devmgr::admission
