// SPDX-License-Identifier: Apache-2.0
#include "control/reservation.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/node_selection.h"
#include "api/quote.h"
#include "control/owned_claim.h"

namespace devmgr::control {
namespace {

constexpr std::size_t kMaxConsumersOfOldClaim = 32;
/// As a scheduler of Kubernetes 1.30 wrote it.
constexpr char kOldClaimFinalizer[] = "dra.k8s.io/delete-protection";

std::string NameOf(const ObjectMeta& metadata) {
  return api::Quoted(metadata.FullName().ToString());
}

/// Of claims up to v1alpha2 the allocation says whether several pods may have
/// it.
std::size_t MostConsumers(const ResourceClaim& claim) {
  if (!claim.spec.old.has_value()) return kMaxConsumers;
  return claim.status.allocation->shareable ? kMaxConsumersOfOldClaim : 1;
}

bool IsGone(const ResourceClaimConsumer& consumer,
            const std::set<PodUid>& pods) {
  return consumer.api_group.empty() && consumer.resource == "pods" &&
         !consumer.uid.empty() && !pods.contains(PodUid{consumer.uid});
}

/// Moves the consumers that are gone; nothing while the devices may still be in
/// use and it would be the last ones.
std::vector<ResourceClaimConsumer> DropConsumers(ResourceClaim& claim,
                                                 const ClaimUsers& users) {
  auto& all = claim.status.reserved_for;
  const auto gone = std::stable_partition(
      all.begin(), all.end(),
      [&](const auto& consumer) { return !IsGone(consumer, users.pods); });
  std::vector<ResourceClaimConsumer> dropped;
  if (users.is_prepared && gone == all.begin()) return dropped;
  std::move(gone, all.end(), std::back_inserter(dropped));
  all.erase(gone, all.end());
  return dropped;
}

/// Allocations that another controller made, or that last as long as the claim,
/// are given up with the claim alone.
bool LosesAllocationWithoutConsumers(const ResourceClaim& claim) {
  if (!claim.metadata.deletion_timestamp.empty()) return true;
  const bool is_immediate =
      claim.spec.old.has_value() && claim.spec.old->is_immediate;
  return !is_immediate && claim.spec.controller.empty();
}

void Deallocate(ResourceClaim& claim) {
  claim.status.allocation.reset();
  claim.status.devices.clear();
  claim.status.driver.clear();
}

void RemoveFinalizers(ResourceClaim& claim) {
  auto& all = claim.metadata.finalizers;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const std::string& finalizer) {
                             return finalizer == kClaimFinalizer ||
                                    finalizer == kOldClaimFinalizer;
                           }),
            all.end());
}

}  // namespace

bool IsReservedFor(const ResourceClaim& claim, const Pod& pod) {
  const auto& all = claim.status.reserved_for;
  return !pod.metadata.uid.empty() &&
         std::any_of(all.begin(), all.end(), [&](const auto& consumer) {
           return consumer.uid == pod.metadata.uid;
         });
}

Verdict CheckReservation(const Pod& pod, const ResourceClaim& claim,
                         const Node& node) {
  const std::string name = NameOf(claim.metadata);
  const auto wait = [&](std::string reason, std::string message) {
    return Verdict{
        Verdict::Kind::kWait,
        std::move(reason),
        std::move(message),
        {{WaitingFor::Kind::kClaim, claim.metadata.FullName().ToString()}}};
  };
  if (HasEnded(pod)) {
    return {Verdict::Kind::kReject,
            "PodHasEnded",
            fmt::format("pod {} has ended ({}): no claim is reserved for it",
                        NameOf(pod.metadata), pod.status.phase),
            {}};
  }
  if (IsReservedFor(claim, pod)) return {};
  if (!claim.metadata.deletion_timestamp.empty()) {
    return wait("ClaimBeingDeleted",
                fmt::format("ResourceClaim {} is being deleted since {}: no "
                            "other pod can have it",
                            name, claim.metadata.deletion_timestamp));
  }
  if (!claim.status.allocation.has_value()) {
    return wait("ClaimNotAllocated",
                fmt::format("ResourceClaim {}: not allocated", name));
  }
  const auto& selector = claim.status.allocation->node_selector;
  if (selector.has_value() && !allocator::Matches(*selector, node)) {
    return wait("ClaimOnOtherNode",
                fmt::format("ResourceClaim {} is allocated devices that node "
                            "{} does not reach, by the allocation's "
                            "nodeSelector",
                            name, api::Quoted(node.metadata.name)));
  }
  const std::size_t most = MostConsumers(claim);
  if (claim.status.reserved_for.size() >= most) {
    return wait("ClaimReservationLimit",
                fmt::format("ResourceClaim {} is reserved for {} pods, at most "
                            "{} can have it",
                            name, claim.status.reserved_for.size(), most));
  }
  return {};
}

ResourceClaim Reserve(ResourceClaim claim, const Pod& pod) {
  if (!IsReservedFor(claim, pod)) {
    claim.status.reserved_for.push_back(
        {"", "pods", pod.metadata.name, pod.metadata.uid});
  }
  return claim;
}

ResourceClaim Allocate(ResourceClaim claim, AllocationResult allocation) {
  claim.status.allocation = std::move(allocation);
  const std::string finalizer =
      claim.spec.old.has_value() ? kOldClaimFinalizer : kClaimFinalizer;
  auto& all = claim.metadata.finalizers;
  if (std::find(all.begin(), all.end(), finalizer) == all.end()) {
    all.push_back(finalizer);
  }
  return claim;
}

Settlement Settle(const ResourceClaim& claim, const ClaimUsers& users,
                  const std::string& now) {
  Settlement settled{ClaimFate::kStays, claim, {}, false};
  ResourceClaim& next = settled.claim;
  settled.dropped = DropConsumers(next, users);
  const bool is_made = IsMadeForPod(claim);
  if (is_made && next.metadata.deletion_timestamp.empty() &&
      !users.pods.contains(PodUid{ControllingPod(claim)->uid})) {
    next.metadata.deletion_timestamp = now;
  }
  const bool is_deleted = !next.metadata.deletion_timestamp.empty();
  const bool last_has_left = next.status.reserved_for.empty() &&
                             (is_deleted || !claim.status.reserved_for.empty());
  if (last_has_left && !users.is_prepared) {
    if (LosesAllocationWithoutConsumers(next)) {
      settled.deallocated = next.status.allocation.has_value();
      Deallocate(next);
    }
    if (is_deleted || is_made) RemoveFinalizers(next);
    if (is_deleted && next.metadata.finalizers.empty()) {
      settled.fate = ClaimFate::kGoes;
      return settled;
    }
  }
  if (next != claim) settled.fate = ClaimFate::kChanges;
  return settled;
}

}  // namespace devmgr::control
