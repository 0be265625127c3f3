// SPDX-License-Identifier: Apache-2.0
#include "claim/pod_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "api/meta.h"
#include "api/names.h"
#include "claim/claim_names.h"

namespace devmgr::claim {
namespace {

constexpr std::size_t kMaxPodsOfOldClaim = 32;

Verdict Wait(std::string reason, std::string message, WaitingFor what) {
  return {Verdict::Kind::kWait,
          std::move(reason),
          std::move(message),
          {std::move(what)}};
}

std::string NotOwnedText(const Pod& pod, const ResourceClaim& claim,
                         const PlanOptions& options) {
  const std::string& group = GroupOf(pod, options);
  return fmt::format(
      "ResourceClaim {} was not created for Pod {} ({})",
      claim.metadata.FullName().ToString(), pod.metadata.FullName().ToString(),
      group.empty()
          ? "Pod is not owner"
          : fmt::format("neither Pod nor PodGroup {} is the owner", group));
}

bool IsReservedFor(const Pod& pod, const ResourceClaim& claim,
                   const PlanOptions& options) {
  const std::string& group = GroupOf(pod, options);
  for (const ResourceClaimConsumer& consumer : claim.status.reserved_for) {
    if (!group.empty() && consumer.api_group == kSchedulingGroup &&
        consumer.resource == "podgroups" && consumer.name == group) {
      return true;
    }
    if (!consumer.uid.empty()) {
      if (consumer.uid == pod.metadata.uid) return true;
    } else if (consumer.resource == "pods" &&
               consumer.name == pod.metadata.name) {
      return true;
    }
  }
  return false;
}

bool WantsOperationsSkipped(const ResourceClaim& claim) {
  const auto& results = claim.status.allocation->results;
  return std::any_of(results.begin(), results.end(), [](const auto& result) {
    return !result.skip_node_operations.empty();
  });
}

/// The checks of one claim object; admits when all hold.
Verdict CheckClaim(const Pod& pod, const NamedClaim& named,
                   const ResourceClaim& claim, const PlanOptions& options) {
  const std::string full_name = claim.metadata.FullName().ToString();
  if (named.made_for_pod && !IsOwner(pod, claim, options)) {
    // Maybe that of the pod's last incarnation, which goes, or one whose
    // object is written in several steps.
    return Wait("ClaimNotOwned", NotOwnedText(pod, claim, options),
                {WaitingFor::Kind::kClaim, full_name});
  }
  if (!IsReservedFor(pod, claim, options)) {
    return Wait("ClaimNotReserved",
                fmt::format("pod {} ({}) is not allowed to use ResourceClaim "
                            "{} ({}): status.reservedFor does not name it",
                            pod.metadata.name, pod.metadata.uid,
                            claim.metadata.name, claim.metadata.uid),
                {WaitingFor::Kind::kClaim, full_name});
  }
  if (!claim.status.allocation.has_value()) {
    return Wait(
        "ClaimNotAllocated",
        fmt::format("ResourceClaim {}: not allocated", claim.metadata.name),
        {WaitingFor::Kind::kClaim, full_name});
  }
  if (!options.optional_operations && WantsOperationsSkipped(claim)) {
    return Wait("FeatureGateDisabled",
                fmt::format("ResourceClaim {} has devices that do without node "
                            "operations: the DRAOptionalNodeOperations feature "
                            "gate is disabled on kubelet",
                            claim.metadata.name),
                {WaitingFor::Kind::kClaim, full_name});
  }
  return {};
}

state::SkippedOperations SkippedBy(
    const DeviceRequestAllocationResult& result) {
  const auto has = [&](std::string_view operation) {
    const auto& all = result.skip_node_operations;
    return std::find(all.begin(), all.end(), operation) != all.end();
  };
  return {has("*") || has("NodePrepareResources"),
          has("*") || has("NodeUnprepareResources")};
}

/// Other nodes reach the device, too: says the claim, or where it is published.
bool IsNetworkAttached(const DeviceRequestAllocationResult& result,
                       const ObjectSnapshot& objects) {
  return std::any_of(objects.resource_slices.begin(),
                     objects.resource_slices.end(), [&](const auto& item) {
                       const ResourceSlice& slice = *item.second;
                       return slice.driver == result.driver &&
                              slice.pool == result.pool &&
                              slice.node_name.empty();
                     });
}

/// As many as `status.reservedFor` of claims up to v1alpha2 may have: one, or
/// 32. Those claims have no results; handles are all that is read of them.
std::size_t MaxPodsOf(const ResourceClaim& claim) {
  const AllocationResult& allocation = *claim.status.allocation;
  const bool is_old =
      claim.spec.old.has_value() ||
      (allocation.results.empty() && !allocation.resource_handles.empty());
  if (!is_old) return 0;
  return allocation.shareable ? kMaxPodsOfOldClaim : 1;
}

/// Of an allocated claim.
PlannedClaim PlanClaim(const ResourceClaim& claim,
                       const ObjectSnapshot& objects,
                       const PlanOptions& options) {
  PlannedClaim planned{ClaimUid{claim.metadata.uid}, claim.metadata.FullName()};
  // What every device of a driver does without.
  std::map<std::string, state::SkippedOperations> drivers;
  planned.network_attached = claim.status.allocation->many_nodes;
  planned.max_pods = MaxPodsOf(claim);
  for (const auto& result : claim.status.allocation->results) {
    const state::SkippedOperations skipped = SkippedBy(result);
    auto& all = drivers.try_emplace(result.driver, skipped).first->second;
    all.prepare = all.prepare && skipped.prepare;
    all.unprepare = all.unprepare && skipped.unprepare;
    planned.network_attached =
        planned.network_attached || IsNetworkAttached(result, objects);
    const bool shared = result.admin_access || !result.share_id.empty();
    device::Hardware hardware;
    if (!shared && options.hardware_of) {
      hardware =
          options.hardware_of({result.driver, result.pool, result.device});
    }
    planned.devices[result.driver].push_back(
        {result.pool, result.device, shared, std::move(hardware)});
  }
  const AllocationResult& allocation = *claim.status.allocation;
  if (allocation.results.empty() || options.old_drivers) {
    planned.handles = allocation.resource_handles;
  }
  for (const auto& [driver, handle] : planned.handles) {
    drivers.try_emplace(driver);
  }
  for (const auto& [driver, skipped] : drivers) {
    planned.drivers.push_back(driver);
    if (skipped != state::SkippedOperations())
      planned.skipped[driver] = skipped;
  }
  return planned;
}

std::string SinceText(std::chrono::system_clock::time_point since) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      since.time_since_epoch());
  return api::TimestampOf(ms.count());
}

Verdict MissingClaim(const ObjectName& claim, const ObjectSnapshot& objects) {
  const auto unread = objects.unread_claims.find(claim);
  if (unread == objects.unread_claims.end()) {
    return Wait(kClaimNotFound,
                fmt::format("fetch ResourceClaim {}: not found", claim.name),
                {WaitingFor::Kind::kClaim, claim.ToString()});
  }
  return Wait(
      kClaimUnavailable,
      fmt::format("fetch ResourceClaim {}: not read since {}: {}", claim.name,
                  SinceText(unread->second.since), unread->second.reason),
      {WaitingFor::Kind::kClaim, claim.ToString()});
}

/// Finds and checks the objects; the UIDs by claim name.
std::map<std::string, ClaimUid> CheckClaims(const Pod& pod,
                                            const ObjectSnapshot& objects,
                                            const ClaimNames& names,
                                            const PlanOptions& options,
                                            PlanResult* result) {
  std::map<std::string, ClaimUid> uids;
  for (const NamedClaim& named : names.claims()) {
    const ObjectName full_name{pod.metadata.ns, named.name};
    const auto found = objects.claims.find(full_name);
    if (found == objects.claims.end()) {
      Worsen(result->verdict, MissingClaim(full_name, objects));
      continue;
    }
    const ResourceClaim& claim = *found->second;
    const Verdict checked = CheckClaim(pod, named, claim, options);
    Worsen(result->verdict, checked);
    if (checked.kind != Verdict::Kind::kAdmit) continue;
    if (uids.emplace(named.name, ClaimUid{claim.metadata.uid}).second) {
      result->plan.claims.push_back(PlanClaim(claim, objects, options));
    }
  }
  return uids;
}

/// Requests of the special claim that serve a container's extended resources;
/// reports the resources that nobody serves.
void WantExtendedResources(const Pod& pod, const Container& container,
                           const PlanOptions& options,
                           const std::map<std::string, ClaimUid>& uids,
                           state::ContainerNeed* need, Verdict* verdict) {
  std::set<std::string> served;
  for (const auto& mapping : MappedRequests(pod, container, options)) {
    served.insert(mapping.resource_name);
    const auto uid = uids.find(
        pod.status.extended_resource_claim_status->resource_claim_name);
    if (uid == uids.end()) continue;  // the claim has its own problem
    need->wants.push_back(
        {uid->second, mapping.request_name, mapping.resource_name});
  }
  for (const auto& [resource, quantity] : container.resources.requests) {
    if (quantity.IsZero() || served.contains(resource) ||
        !api::CanBeDraExtendedResource(resource)) {
      continue;
    }
    std::string why = "no device plugin serves it";
    if (options.why_not_served) why = options.why_not_served(resource);
    if (why.empty()) continue;
    Worsen(*verdict,
           Wait("ExtendedResourceNotMapped",
                fmt::format("container \"{}\": extended resource '{}': {}, and "
                            "no claim request is mapped to it",
                            container.name, resource, why),
                {WaitingFor::Kind::kResource, resource}));
  }
}

state::ContainerNeed PlanContainer(const Pod& pod, const Container& container,
                                   bool init, const PlanOptions& options,
                                   const ClaimNames& names,
                                   const std::map<std::string, ClaimUid>& uids,
                                   Verdict* verdict) {
  state::ContainerNeed need{container.name, init, {}};
  for (const PodResourceClaim& pod_claim : pod.spec.resource_claims) {
    const NamedClaim* named = names.ForPodClaim(pod_claim.name);
    if (named == nullptr) continue;  // none needed, or reported already
    const auto uid = uids.find(named->name);
    if (uid == uids.end()) continue;
    for (const ContainerClaimReference& claim : container.resources.claims) {
      if (claim.name != pod_claim.name) continue;
      need.wants.push_back({uid->second, claim.request, "", pod_claim.name});
    }
  }
  WantExtendedResources(pod, container, options, uids, &need, verdict);
  return need;
}

}  // namespace

void Worsen(Verdict& verdict, const Verdict& problem) {
  if (problem.kind == Verdict::Kind::kAdmit) return;
  if (verdict.kind == Verdict::Kind::kReject) return;
  if (verdict.kind == Verdict::Kind::kAdmit ||
      problem.kind == Verdict::Kind::kReject) {
    verdict = problem;
    return;
  }
  verdict.message += "; " + problem.message;
  for (const WaitingFor& what : problem.waiting_for) {
    if (std::find(verdict.waiting_for.begin(), verdict.waiting_for.end(),
                  what) == verdict.waiting_for.end()) {
      verdict.waiting_for.push_back(what);
    }
  }
}

PlanResult PlanPod(const Pod& pod, const ObjectSnapshot& objects,
                   const PlanOptions& options) {
  PlanResult result;
  result.plan.sharing = options.sharing;
  const ClaimNames names(pod, objects, options, &result.verdict);
  const auto uids = CheckClaims(pod, objects, names, options, &result);
  for (const Container& container : pod.spec.init_containers) {
    result.plan.needs.push_back(PlanContainer(pod, container, true, options,
                                              names, uids, &result.verdict));
  }
  for (const Container& container : pod.spec.containers) {
    result.plan.needs.push_back(PlanContainer(pod, container, false, options,
                                              names, uids, &result.verdict));
  }
  return result;
}

}  // namespace devmgr::claim
