// SPDX-License-Identifier: Apache-2.0
//
// Which claims a pod means, by name: nothing is known about the objects yet.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <optional>
#include <string>
#include <vector>

#include "claim/pod_plan.h"

namespace devmgr::claim {

inline constexpr char kSchedulingGroup[] = "scheduling.k8s.io";

/// Of a rejection: the pod breaks a rule of the API.
inline constexpr char kInvalidPod[] = "InvalidPod";

/// Does the entry name a claim or a template? Without either the pod is
/// invalid.
bool HasSource(const PodResourceClaim& entry);

/// A claim that the pod names.
struct NamedClaim {
  std::string pod_claim;  ///< Empty for the special claim.
  std::string name;
  bool made_for_pod = false;  ///< From a template: the owner is checked.
};

/// What an entry of `spec.resourceClaims` means: a claim, a problem, or
/// neither, when none is needed.
struct ClaimNaming {
  std::optional<NamedClaim> claim;
  Verdict problem;
};
ClaimNaming NameClaim(const Pod& pod, const PodResourceClaim& entry,
                      const ObjectSnapshot& objects,
                      const PlanOptions& options);

/// The claim for the pod's extended resources, where there can be one.
std::optional<NamedClaim> NameSpecialClaim(const Pod& pod,
                                           const PlanOptions& options);

/// Names of the pod's claims in order; those that need none are left out.
class ClaimNames {
 public:
  /// Adds to `verdict` what is wrong with entries.
  ClaimNames(const Pod& pod, const ObjectSnapshot& objects,
             const PlanOptions& options, Verdict* verdict);

  const std::vector<NamedClaim>& claims() const { return claims_; }

  /// Null when the entry needs none, or has a problem.
  const NamedClaim* ForPodClaim(const std::string& pod_claim) const;

 private:
  std::vector<NamedClaim> claims_;
};

/// The requests of the special claim that are mapped to what a container asks
/// for: those of extended resources of which it wants more than none.
std::vector<ContainerExtendedResourceRequest> MappedRequests(
    const Pod& pod, const Container& container, const PlanOptions& options);

/// The group of the pod, where groups count; empty: none.
const std::string& GroupOf(const Pod& pod, const PlanOptions& options);

/// The pod owns the claim when the claim's controller is the pod, or its group.
/// A file may leave out the UID that it cannot know; then the name stands for
/// it.
bool IsOwner(const Pod& pod, const ResourceClaim& claim,
             const PlanOptions& options);

}  // namespace devmgr::claim
