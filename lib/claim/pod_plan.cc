// SPDX-License-Identifier: Apache-2.0
#include "claim/pod_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/names.h"

namespace devmgr::claim {
namespace {

Verdict Wait(std::string reason, std::string message, WaitingFor what) {
  return {Verdict::Kind::kWait,
          std::move(reason),
          std::move(message),
          {std::move(what)}};
}

/// `what` would have to change; only for pods that cannot be rejected any more.
Verdict Reject(std::string reason, std::string message, WaitingFor what) {
  return {Verdict::Kind::kReject,
          std::move(reason),
          std::move(message),
          {std::move(what)}};
}

/// A claim that the pod names, before anything is known about the object.
struct NamedClaim {
  std::string pod_claim;  ///< Empty for the special claim.
  std::string name;
  bool made_for_pod = false;  ///< From a template: the owner is checked.
};

constexpr char kSchedulingGroup[] = "scheduling.k8s.io";

/// The group of the pod, where groups count; empty: none.
const std::string& GroupOf(const Pod& pod, const PlanOptions& options) {
  static const std::string none;
  return options.pod_groups ? pod.spec.pod_group : none;
}

bool IsPodGroup(const OwnerReference& owner, const std::string& group) {
  const std::string& version = owner.api_version;
  return !group.empty() && owner.kind == "PodGroup" && owner.name == group &&
         version.substr(0, version.find('/')) == kSchedulingGroup;
}

/// The pod owns the claim when the claim's controller is the pod, or its group.
/// A file may leave out the UID that it cannot know; then the name stands for
/// it.
bool IsOwner(const Pod& pod, const ResourceClaim& claim,
             const PlanOptions& options) {
  for (const OwnerReference& owner : claim.metadata.owner_references) {
    if (!owner.controller) continue;
    if (IsPodGroup(owner, GroupOf(pod, options))) return true;
    if (!owner.uid.empty()) return owner.uid == pod.metadata.uid;
    return owner.kind == "Pod" && owner.name == pod.metadata.name;
  }
  return false;
}

/// The name of a claim that Kubernetes 1.26 and 1.27 made for a pod.
std::string NameWithoutStatus(const Pod& pod, const PodResourceClaim& entry) {
  return pod.metadata.name + "-" + entry.name;
}

/// Names of the pod's claims in order; those that need none are left out.
class ClaimNames {
 public:
  ClaimNames(const Pod& pod, const ObjectSnapshot& objects,
             const PlanOptions& options, Verdict* verdict) {
    for (const PodResourceClaim& entry : pod.spec.resource_claims) {
      if (options.claim_names_without_status &&
          AddClaimWithoutStatus(pod, entry, objects, options)) {
        continue;
      }
      AddPodClaim(pod, entry, options, verdict);
    }
    const auto& special = pod.status.extended_resource_claim_status;
    if (options.extended_resources && special.has_value()) {
      claims_.push_back({"", special->resource_claim_name, false});
    }
  }

  const std::vector<NamedClaim>& claims() const { return claims_; }

  const NamedClaim* ForPodClaim(const std::string& pod_claim) const {
    for (const NamedClaim& claim : claims_) {
      if (!claim.pod_claim.empty() && claim.pod_claim == pod_claim) {
        return &claim;
      }
    }
    return nullptr;
  }

 private:
  /// False when there is no such claim, or it is somebody else's.
  bool AddClaimWithoutStatus(const Pod& pod, const PodResourceClaim& entry,
                             const ObjectSnapshot& objects,
                             const PlanOptions& options) {
    if (!entry.resource_claim_template_name.has_value() ||
        !pod.status.resource_claim_statuses.empty()) {
      return false;
    }
    const std::string name = NameWithoutStatus(pod, entry);
    const auto claim = objects.claims.find({pod.metadata.ns, name});
    if (claim == objects.claims.end() ||
        !IsOwner(pod, *claim->second, options)) {
      return false;
    }
    claims_.push_back({entry.name, name, true});
    return true;
  }

  void AddPodClaim(const Pod& pod, const PodResourceClaim& entry,
                   const PlanOptions& options, Verdict* verdict) {
    const std::string pod_name = pod.metadata.FullName().ToString();
    if (entry.resource_claim_name.has_value()) {
      claims_.push_back({entry.name, *entry.resource_claim_name, false});
      return;
    }
    if (!entry.resource_claim_template_name.has_value()) {
      Worsen(*verdict,
             Reject("InvalidPod",
                    fmt::format("pod \"{}\", spec.resourceClaim \"{}\": none "
                                "of the supported fields are set",
                                pod_name, entry.name),
                    {WaitingFor::Kind::kPod, pod_name}));
      return;
    }
    const auto& statuses = pod.status.resource_claim_statuses;
    const auto status = std::find_if(
        statuses.begin(), statuses.end(),
        [&](const PodResourceClaimStatus& s) { return s.name == entry.name; });
    if (status == statuses.end()) {
      Verdict wait =
          Wait("ClaimNotCreated",
               fmt::format("pod \"{}\": ResourceClaim not created yet (pod "
                           "claim \"{}\", template \"{}\")",
                           pod_name, entry.name,
                           *entry.resource_claim_template_name),
               {WaitingFor::Kind::kPod, pod_name});
      if (options.claim_names_without_status) {
        const ObjectName claim{pod.metadata.ns, NameWithoutStatus(pod, entry)};
        wait.waiting_for.push_back(
            {WaitingFor::Kind::kClaim, claim.ToString()});
      }
      Worsen(*verdict, wait);
      return;
    }
    if (!status->resource_claim_name.has_value()) return;  // none is needed
    claims_.push_back({entry.name, *status->resource_claim_name, true});
  }

  std::vector<NamedClaim> claims_;
};

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
    return Reject("ClaimNotOwned", NotOwnedText(pod, claim, options),
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

/// Of an allocated claim.
PlannedClaim PlanClaim(const ResourceClaim& claim,
                       const ObjectSnapshot& objects) {
  PlannedClaim planned{ClaimUid{claim.metadata.uid}, claim.metadata.FullName()};
  // What every device of a driver does without.
  std::map<std::string, state::SkippedOperations> drivers;
  planned.network_attached = claim.status.allocation->many_nodes;
  for (const auto& result : claim.status.allocation->results) {
    const state::SkippedOperations skipped = SkippedBy(result);
    auto& all = drivers.try_emplace(result.driver, skipped).first->second;
    all.prepare = all.prepare && skipped.prepare;
    all.unprepare = all.unprepare && skipped.unprepare;
    planned.network_attached =
        planned.network_attached || IsNetworkAttached(result, objects);
    if (!result.admin_access && result.share_id.empty()) {
      planned.devices.insert({result.driver, result.pool, result.device});
    }
  }
  planned.handles = claim.status.allocation->resource_handles;
  for (const auto& [driver, handle] : planned.handles) drivers[driver] = {};
  for (const auto& [driver, skipped] : drivers) {
    planned.drivers.push_back(driver);
    if (skipped != state::SkippedOperations())
      planned.skipped[driver] = skipped;
  }
  return planned;
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
      Worsen(result->verdict,
             Wait("ClaimNotFound",
                  fmt::format("fetch ResourceClaim {}: not found", named.name),
                  {WaitingFor::Kind::kClaim, full_name.ToString()}));
      continue;
    }
    const ResourceClaim& claim = *found->second;
    const Verdict checked = CheckClaim(pod, named, claim, options);
    Worsen(result->verdict, checked);
    if (checked.kind != Verdict::Kind::kAdmit) continue;
    if (uids.emplace(named.name, ClaimUid{claim.metadata.uid}).second) {
      result->plan.claims.push_back(PlanClaim(claim, objects));
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
  const auto& status = pod.status.extended_resource_claim_status;
  const bool mapped = options.extended_resources && status.has_value();
  std::set<std::string> served;
  if (mapped) {
    for (const auto& mapping : status->request_mappings) {
      const auto wanted =
          container.resources.requests.find(mapping.resource_name);
      if (mapping.container_name != container.name ||
          wanted == container.resources.requests.end() ||
          wanted->second.IsZero() ||
          !api::CanBeDraExtendedResource(mapping.resource_name)) {
        continue;
      }
      served.insert(mapping.resource_name);
      const auto uid = uids.find(status->resource_claim_name);
      if (uid == uids.end()) continue;  // the claim has its own problem
      need->wants.push_back(
          {uid->second, mapping.request_name, mapping.resource_name});
    }
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
