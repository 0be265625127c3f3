// SPDX-License-Identifier: Apache-2.0
#include "admission/claim_alignment.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "claim/claim_names.h"
#include "topology/claim_hints.h"
#include "topology/provider_hints.h"

namespace devmgr::admission {
namespace {

/// `request` of a container is `result`'s, or the one that it is a part of.
bool IsOfRequest(std::string_view result, std::string_view request) {
  return request.empty() || result == request ||
         (result.starts_with(request) && result.size() > request.size() &&
          result[request.size()] == '/');
}

/// Null: no slice has it (any more).
const SliceDevice* FindPublished(const ObjectSnapshot& objects,
                                 const DeviceRequestAllocationResult& result) {
  const SliceDevice* newest = nullptr;
  std::int64_t generation = 0;
  for (const auto& [name, slice] : objects.resource_slices) {
    if (slice->driver != result.driver || slice->pool != result.pool) continue;
    if (newest != nullptr && slice->pool_generation <= generation) continue;
    for (const SliceDevice& device : slice->devices) {
      if (device.name != result.device) continue;
      newest = &device;
      generation = slice->pool_generation;
    }
  }
  return newest;
}

/// Adds the devices that `request` of the claim has.
void AddDevices(const ResourceClaim& claim, std::string_view request,
                const ObjectSnapshot& objects,
                std::vector<topology::ClaimDevice>* devices) {
  for (const auto& result : claim.status.allocation->results) {
    if (result.admin_access || !IsOfRequest(result.request, request)) continue;
    const auto* published = FindPublished(objects, result);
    if (published == nullptr) continue;
    // One that is on no node is as near to each of them.
    topology::ClaimDevice device{.nodes = topology::NumaNodesOf(*published),
                                 .allocated = true};
    if (!device.nodes.empty()) devices->push_back(std::move(device));
  }
}

/// Null: there is none of this name, or it has no allocation.
const ResourceClaim* FindAllocated(const ObjectSnapshot& objects,
                                   const std::string& ns,
                                   const std::string& name) {
  const auto* claim = objects.claims.Find({ns, name});
  const bool is_allocated =
      claim != nullptr && (*claim)->status.allocation.has_value();
  return is_allocated ? claim->get() : nullptr;
}

/// What one list of hints is of.
struct Listed {
  std::vector<topology::ClaimDevice> devices;
  bool binding = false;
};

}  // namespace

std::vector<topology::ResourceHints> HintsOfClaims(
    const Pod& pod, const ContainerName& container,
    const ObjectSnapshot& objects, const claim::PlanOptions& options,
    NumaMask machine,
    const std::function<bool(const ResourceClaim&)>& is_local) {
  Verdict problems;  // Judged before.
  const claim::ClaimNames names(pod, objects, options, &problems);
  const auto special = claim::NameSpecialClaim(pod, options);
  const ResourceClaim* special_claim =
      special ? FindAllocated(objects, pod.metadata.ns, special->name)
              : nullptr;
  std::map<std::string, Listed> lists;
  const auto list = [&](const std::string& shown, const ResourceClaim& claim,
                        std::string_view request) {
    AddDevices(claim, request, objects, &lists[shown].devices);
    lists[shown].binding = is_local && is_local(claim);
  };
  const auto add = [&](const Container& one) {
    if (!container.empty() && one.name != container.value) return;
    for (const ContainerClaimReference& reference : one.resources.claims) {
      const claim::NamedClaim* named = names.ForPodClaim(reference.name);
      if (named == nullptr) continue;
      const auto* claim = FindAllocated(objects, pod.metadata.ns, named->name);
      if (claim == nullptr) continue;
      std::string shown = reference.name;
      if (!reference.request.empty()) shown += "/" + reference.request;
      // Containers share what they name alike.
      if (!lists.contains(shown)) list(shown, *claim, reference.request);
    }
    if (special_claim == nullptr) return;
    // Each container has requests of its own.
    for (const auto& mapped : claim::MappedRequests(pod, one, options)) {
      list(mapped.resource_name, *special_claim, mapped.request_name);
    }
  };
  for (const Container& one : pod.spec.init_containers) add(one);
  for (const Container& one : pod.spec.containers) add(one);
  std::vector<topology::ResourceHints> all;
  for (const auto& [shown, listed] : lists) {
    all.push_back(topology::ToResourceHints(
        topology::kClaimProvider, shown,
        topology::HintsOfClaim(listed.devices, 0, machine.Nodes())));
    all.back().binding = listed.binding;
  }
  return all;
}

bool IsAllocatedHere(const ResourceClaim& claim, const state::State& state,
                     const ObjectSnapshot* now) {
  if (state.FindLocalClaim({claim.metadata.uid}) != nullptr) return true;
  if (now == nullptr) return false;
  const auto* known = now->claims.Find(claim.metadata.FullName());
  return known == nullptr || !(*known)->status.allocation.has_value();
}

ClaimAlignment ClaimAlignmentOf(const AlignedPlan& aligned,
                                const AlignmentRules& rules) {
  ClaimAlignment result;
  result.is_best_effort = rules.options.policy == topology::Policy::kBestEffort;
  if (aligned.alignment == nullptr) return result;
  result.masks = MasksOf(aligned.alignment.get());
  if (!aligned.alignment->admitted &&
      rules.options.scope == topology::Scope::kContainer) {
    result.refused = aligned.alignment->containers.back().container;
  }
  result.possible = aligned.possible;
  return result;
}

std::vector<device::Shortage> InTheWayOf(const AlignedPlan& aligned) {
  if (!aligned.plan.shortages.empty()) return aligned.plan.shortages;
  return {{.kind = device::Shortage::Kind::kNotAligned,
           .state = device::EndpointState::kLive}};
}

DeviceVerdict JudgeUnaligned(const AlignedPlan& aligned,
                             const std::vector<device::Shortage>& shortages,
                             const DevicePolicy& policy,
                             std::chrono::milliseconds waited) {
  DeviceVerdict judged = JudgeShortages(shortages, policy, waited);
  const bool of_plugins = !aligned.plan.shortages.empty();
  if (judged.verdict.kind == Verdict::Kind::kWait && !of_plugins) {
    judged.verdict.message = aligned.alignment->message;
    judged.verdict.waiting_for.clear();
  }
  return judged;
}

}  // namespace devmgr::admission
