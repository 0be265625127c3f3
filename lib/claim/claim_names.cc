// SPDX-License-Identifier: Apache-2.0
#include "claim/claim_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/names.h"

namespace devmgr::claim {
namespace {

bool IsPodGroup(const OwnerReference& owner, const std::string& group) {
  const std::string& version = owner.api_version;
  return !group.empty() && owner.kind == "PodGroup" && owner.name == group &&
         version.substr(0, version.find('/')) == kSchedulingGroup;
}

/// The name of a claim that Kubernetes 1.26 and 1.27 made for a pod.
std::string NameWithoutStatus(const Pod& pod, const PodResourceClaim& entry) {
  return pod.metadata.name + "-" + entry.name;
}

/// Nothing when there is no such claim, or it is somebody else's.
std::optional<NamedClaim> ClaimWithoutStatus(const Pod& pod,
                                             const PodResourceClaim& entry,
                                             const ObjectSnapshot& objects,
                                             const PlanOptions& options) {
  if (!entry.resource_claim_template_name.has_value() ||
      !pod.status.resource_claim_statuses.empty()) {
    return std::nullopt;
  }
  const std::string name = NameWithoutStatus(pod, entry);
  const auto claim = objects.claims.find({pod.metadata.ns, name});
  if (claim == objects.claims.end() || !IsOwner(pod, *claim->second, options)) {
    return std::nullopt;
  }
  return NamedClaim{entry.name, name, true};
}

Verdict NoSource(const Pod& pod, const PodResourceClaim& entry) {
  const std::string pod_name = pod.metadata.FullName().ToString();
  return {Verdict::Kind::kReject,
          kInvalidPod,
          fmt::format("pod \"{}\", spec.resourceClaim \"{}\": none of the "
                      "supported fields are set",
                      pod_name, entry.name),
          {{WaitingFor::Kind::kPod, pod_name}}};
}

Verdict NotCreated(const Pod& pod, const PodResourceClaim& entry,
                   const PlanOptions& options) {
  const std::string pod_name = pod.metadata.FullName().ToString();
  Verdict wait{
      Verdict::Kind::kWait,
      "ClaimNotCreated",
      fmt::format("pod \"{}\": ResourceClaim not created yet (pod "
                  "claim \"{}\", template \"{}\")",
                  pod_name, entry.name, *entry.resource_claim_template_name),
      {{WaitingFor::Kind::kPod, pod_name}}};
  if (options.claim_names_without_status) {
    const ObjectName claim{pod.metadata.ns, NameWithoutStatus(pod, entry)};
    wait.waiting_for.push_back({WaitingFor::Kind::kClaim, claim.ToString()});
  }
  return wait;
}

}  // namespace

bool HasSource(const PodResourceClaim& entry) {
  return entry.resource_claim_name.has_value() ||
         entry.resource_claim_template_name.has_value();
}

ClaimNaming NameClaim(const Pod& pod, const PodResourceClaim& entry,
                      const ObjectSnapshot& objects,
                      const PlanOptions& options) {
  if (options.claim_names_without_status) {
    auto claim = ClaimWithoutStatus(pod, entry, objects, options);
    if (claim.has_value()) return {std::move(claim), {}};
  }
  if (entry.resource_claim_name.has_value()) {
    return {NamedClaim{entry.name, *entry.resource_claim_name, false}, {}};
  }
  if (!HasSource(entry)) return {std::nullopt, NoSource(pod, entry)};
  const auto& statuses = pod.status.resource_claim_statuses;
  const auto status = std::find_if(
      statuses.begin(), statuses.end(),
      [&](const PodResourceClaimStatus& s) { return s.name == entry.name; });
  if (status == statuses.end()) {
    return {std::nullopt, NotCreated(pod, entry, options)};
  }
  if (!status->resource_claim_name.has_value()) return {};  // none is needed
  return {NamedClaim{entry.name, *status->resource_claim_name, true}, {}};
}

std::optional<NamedClaim> NameSpecialClaim(const Pod& pod,
                                           const PlanOptions& options) {
  const auto& special = pod.status.extended_resource_claim_status;
  if (!options.extended_resources || !special.has_value()) return std::nullopt;
  return NamedClaim{"", special->resource_claim_name, false};
}

ClaimNames::ClaimNames(const Pod& pod, const ObjectSnapshot& objects,
                       const PlanOptions& options, Verdict* verdict) {
  for (const PodResourceClaim& entry : pod.spec.resource_claims) {
    ClaimNaming naming = NameClaim(pod, entry, objects, options);
    Worsen(*verdict, naming.problem);
    if (naming.claim.has_value()) claims_.push_back(*std::move(naming.claim));
  }
  if (auto special = NameSpecialClaim(pod, options); special.has_value()) {
    claims_.push_back(*std::move(special));
  }
}

const NamedClaim* ClaimNames::ForPodClaim(const std::string& pod_claim) const {
  const auto found =
      std::find_if(claims_.begin(), claims_.end(), [&](const auto& claim) {
        return !claim.pod_claim.empty() && claim.pod_claim == pod_claim;
      });
  return found != claims_.end() ? &*found : nullptr;
}

std::vector<ContainerExtendedResourceRequest> MappedRequests(
    const Pod& pod, const Container& container, const PlanOptions& options) {
  std::vector<ContainerExtendedResourceRequest> mapped;
  if (!NameSpecialClaim(pod, options).has_value()) return mapped;
  const auto& requests = container.resources.requests;
  for (const auto& mapping :
       pod.status.extended_resource_claim_status->request_mappings) {
    const auto wanted = requests.find(mapping.resource_name);
    if (mapping.container_name == container.name && wanted != requests.end() &&
        !wanted->second.IsZero() &&
        api::CanBeDraExtendedResource(mapping.resource_name)) {
      mapped.push_back(mapping);
    }
  }
  return mapped;
}

const std::string& GroupOf(const Pod& pod, const PlanOptions& options) {
  static const std::string none;
  return options.pod_groups ? pod.spec.pod_group : none;
}

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

}  // namespace devmgr::claim
