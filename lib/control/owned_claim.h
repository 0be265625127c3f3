// SPDX-License-Identifier: Apache-2.0
//
// Claims that were made for a pod, found again. An annotation says what a claim
// was made for, and its owner for which pod: the annotation by itself proves
// nothing, as any client that may create claims may write it.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>

#include <memory>
#include <string>
#include <vector>

namespace devmgr::control {

/// Of a claim made from a template: which entry of `spec.resourceClaims` it is
/// for.
inline constexpr char kPodClaimNameAnnotation[] =
    "resource.kubernetes.io/pod-claim-name";

/// The pod that controls a claim; null: none does.
const OwnerReference* ControllingPod(const ResourceClaim& claim);

/// The claim's controller is this very pod, by name and UID. What has no UID
/// belongs to no pod.
bool IsControlledBy(const ResourceClaim& claim, const Pod& pod);

/// It was made from a template or for extended resources, for some pod.
bool IsMadeForPod(const ResourceClaim& claim);

/// It says to be a special claim, of whichever pod.
bool SaysSpecialClaim(const ResourceClaim& claim);

/// It is a special claim of this pod.
bool IsSpecialClaimOf(const ResourceClaim& claim, const Pod& pod);

/// It was made from the template of this entry of this pod.
bool IsGeneratedFor(const ResourceClaim& claim, const Pod& pod,
                    const PodResourceClaim& entry);

/// Of special claims of one pod: `a` was made before `b`, or at the same time
/// and is the first by name.
bool IsOlder(const ResourceClaim& a, const ResourceClaim& b);

/// The pod's special claim: the one that its status names; while it names none
/// the oldest, of those of one age the first by name. Null: it has none. Claims
/// that are being deleted are passed over, unless the status names them.
std::shared_ptr<const ResourceClaim> FindSpecialClaim(
    const Pod& pod, const ObjectMap<ResourceClaim>& claims);

/// The other special claims of the pod, by name: what is left of attempts that
/// came to nothing.
std::vector<std::shared_ptr<const ResourceClaim>> LeftOverSpecialClaims(
    const Pod& pod, const ObjectMap<ResourceClaim>& claims,
    const ResourceClaim* kept);

/// A claim that an entry of a pod's spec is to be given.
struct MissingClaim {
  const PodResourceClaim* entry = nullptr;
  /// It was made before and is to be recorded in the pod's status; null: it has
  /// to be made.
  std::shared_ptr<const ResourceClaim> made;
};

/// The entries with a template that the pod's status names no claim for, or one
/// that is not there or not the pod's. None for a pod that has ended or is
/// being deleted.
std::vector<MissingClaim> MissingClaims(const Pod& pod,
                                        const ObjectMap<ResourceClaim>& claims);

/// `Succeeded` or `Failed`.
bool HasEnded(const Pod& pod);

}  // namespace devmgr::control
