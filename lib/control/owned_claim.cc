// SPDX-License-Identifier: Apache-2.0
#include "control/owned_claim.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "api/meta.h"
#include "control/special_claim.h"

namespace devmgr::control {
namespace {

bool HasAnnotation(const ResourceClaim& claim, const std::string& key,
                   const std::string& value) {
  const auto found = claim.metadata.annotations.find(key);
  return found != claim.metadata.annotations.end() && found->second == value;
}

/// What is not known is younger than anything else.
std::int64_t CreatedAt(const ResourceClaim& claim) {
  return api::UnixSecondsOf(claim.metadata.creation_timestamp)
      .value_or(std::numeric_limits<std::int64_t>::max());
}

/// Is the claim that the pod's status names for the entry there, and the pod's?
/// So is an entry that needs none.
bool IsRecorded(const Pod& pod, const PodResourceClaim& entry,
                const ObjectMap<ResourceClaim>& claims) {
  for (const PodResourceClaimStatus& status :
       pod.status.resource_claim_statuses) {
    if (status.name != entry.name) continue;
    if (!status.resource_claim_name.has_value()) return true;
    const auto claim =
        claims.find({pod.metadata.ns, *status.resource_claim_name});
    return claim != claims.end() && IsControlledBy(*claim->second, pod);
  }
  return false;
}

}  // namespace

const OwnerReference* ControllingPod(const ResourceClaim& claim) {
  for (const OwnerReference& owner : claim.metadata.owner_references) {
    if (!owner.controller) continue;
    const bool is_pod =
        owner.kind == "Pod" && owner.api_version == "v1" && !owner.uid.empty();
    return is_pod ? &owner : nullptr;
  }
  return nullptr;
}

bool IsControlledBy(const ResourceClaim& claim, const Pod& pod) {
  const OwnerReference* owner = ControllingPod(claim);
  return owner != nullptr && claim.metadata.ns == pod.metadata.ns &&
         owner->name == pod.metadata.name && owner->uid == pod.metadata.uid;
}

bool IsMadeForPod(const ResourceClaim& claim) {
  return ControllingPod(claim) != nullptr &&
         (SaysSpecialClaim(claim) ||
          claim.metadata.annotations.contains(kPodClaimNameAnnotation));
}

bool SaysSpecialClaim(const ResourceClaim& claim) {
  return HasAnnotation(claim, kExtendedResourceClaimAnnotation, "true");
}

bool IsSpecialClaimOf(const ResourceClaim& claim, const Pod& pod) {
  return SaysSpecialClaim(claim) && IsControlledBy(claim, pod);
}

bool IsGeneratedFor(const ResourceClaim& claim, const Pod& pod,
                    const PodResourceClaim& entry) {
  return HasAnnotation(claim, kPodClaimNameAnnotation, entry.name) &&
         IsControlledBy(claim, pod);
}

bool IsOlder(const ResourceClaim& a, const ResourceClaim& b) {
  const std::int64_t made_a = CreatedAt(a);
  const std::int64_t made_b = CreatedAt(b);
  if (made_a != made_b) return made_a < made_b;
  return a.metadata.name < b.metadata.name;
}

std::shared_ptr<const ResourceClaim> FindSpecialClaim(
    const Pod& pod, const ObjectMap<ResourceClaim>& claims) {
  if (const auto& status = pod.status.extended_resource_claim_status) {
    const auto named =
        claims.find({pod.metadata.ns, status->resource_claim_name});
    const bool is_own =
        named != claims.end() && IsSpecialClaimOf(*named->second, pod);
    return is_own ? named->second : nullptr;
  }
  std::shared_ptr<const ResourceClaim> oldest;
  for (const auto& [name, claim] : claims) {
    if (!IsSpecialClaimOf(*claim, pod)) continue;
    if (!claim->metadata.deletion_timestamp.empty()) continue;
    if (oldest == nullptr || IsOlder(*claim, *oldest)) oldest = claim;
  }
  return oldest;
}

std::vector<std::shared_ptr<const ResourceClaim>> LeftOverSpecialClaims(
    const Pod& pod, const ObjectMap<ResourceClaim>& claims,
    const ResourceClaim* kept) {
  std::vector<std::shared_ptr<const ResourceClaim>> left_over;
  for (const auto& [name, claim] : claims) {
    if (claim.get() != kept && IsSpecialClaimOf(*claim, pod)) {
      left_over.push_back(claim);
    }
  }
  return left_over;
}

std::vector<MissingClaim> MissingClaims(
    const Pod& pod, const ObjectMap<ResourceClaim>& claims) {
  std::vector<MissingClaim> missing;
  if (HasEnded(pod) || !pod.metadata.deletion_timestamp.empty()) return missing;
  for (const PodResourceClaim& entry : pod.spec.resource_claims) {
    if (!entry.resource_claim_template_name.has_value()) continue;
    if (IsRecorded(pod, entry, claims)) continue;
    MissingClaim& found = missing.emplace_back(MissingClaim{&entry, nullptr});
    for (const auto& [name, claim] : claims) {
      if (IsGeneratedFor(*claim, pod, entry) &&
          claim->metadata.deletion_timestamp.empty()) {
        found.made = claim;
        break;
      }
    }
  }
  return missing;
}

bool HasEnded(const Pod& pod) {
  return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
}

}  // namespace devmgr::control
