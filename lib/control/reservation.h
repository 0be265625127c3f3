// SPDX-License-Identifier: Apache-2.0
//
// Which pods have a claim, and what becomes of it when they are gone. All of
// it is from one ResourceClaim to the ResourceClaim that it is to be.
#pragma once

#include <devmgr/objects.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace devmgr::control {

/// Keeps a claim from going while it may be in use.
inline constexpr char kClaimFinalizer[] =
    "resource.kubernetes.io/delete-protection";

/// `status.reservedFor`.
inline constexpr std::size_t kMaxConsumers = 256;

/// Is the claim reserved for this very pod?
bool IsReservedFor(const ResourceClaim& claim, const Pod& pod);

/// May the pod be added to those that the claim is reserved for? Admits one
/// that is among them already. Waits for a claim that is not allocated, is
/// being deleted, cannot be reached from `node`, or has all the pods that it
/// can have; such a claim has no error in it. Rejects a pod that has ended: it
/// needs nothing any more.
Verdict CheckReservation(const Pod& pod, const ResourceClaim& claim,
                         const Node& node);

/// The claim with the pod among its consumers, once.
ResourceClaim Reserve(ResourceClaim claim, const Pod& pod);

/// The claim with this allocation, and protected from being deleted.
ResourceClaim Allocate(ResourceClaim claim, AllocationResult allocation);

/// What is known of the users of a claim.
struct ClaimUsers {
  /// Pods that are there and have not ended, and those that have and of which
  /// containers may run.
  const std::set<PodUid>& pods;
  /// Its devices may still be prepared on this node: nothing is released.
  bool is_prepared = false;
};

enum class ClaimFate {
  kStays,    ///< It is as it has to be.
  kChanges,  ///< It has to be written.
  kGoes,     ///< It has to be deleted, or is no more once it is written.
};

/// What a claim is to be.
struct Settlement {
  ClaimFate fate = ClaimFate::kStays;
  ResourceClaim claim;
  /// For which it is reserved no more.
  std::vector<ResourceClaimConsumer> dropped;
  bool deallocated = false;  ///< Its devices are free.
};

/// Pods that are gone are no consumers of a claim any more. When the last one
/// leaves, the claim loses its allocation; so does one that is being deleted
/// and has none. A claim that was made for a pod that is gone is deleted, as
/// soon as no other pod has it. Consumers that are no pods, or have no UID, are
/// left alone. Settling what it returns changes nothing. `now`, as RFC 3339, is
/// the time of a deletion that begins.
Settlement Settle(const ResourceClaim& claim, const ClaimUsers& users,
                  const std::string& now);

}  // namespace devmgr::control
