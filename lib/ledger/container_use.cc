// SPDX-License-Identifier: Apache-2.0
#include "ledger/container_use.h"

#include <utility>

namespace devmgr::ledger {

ContainerUse::ContainerUse(const state::State& state,
                           const ResolveTable& answers, std::string boot_id)
    : state_(state), answers_(answers), boot_id_(std::move(boot_id)) {
  for (const auto& [uid, pod] : state_.pods) {
    if (pod->boot_id == boot_id_) unknown_.insert(uid);
  }
}

void ContainerUse::OnLetThrough(const PodUid& pod,
                                const std::set<ClaimUid>& claims) {
  if (!claims.empty()) let_through_[pod].insert(claims.begin(), claims.end());
}

void ContainerUse::OnCommitted(const Changes& changes) {
  for (const auto& [before, now] : changes.pods) {
    if (now != nullptr) continue;
    unknown_.erase(before->uid);
    asked_.erase(before->uid);
    let_through_.erase(before->uid);
  }
}

bool ContainerUse::MayRun(const PodUid& pod, const ClaimUid& claim) const {
  if (unknown_.contains(pod)) return true;
  const auto let_through = let_through_.find(pod);
  if (let_through != let_through_.end() &&
      let_through->second.contains(claim)) {
    return true;
  }
  return !asked_.contains(pod) && answers_.WasRead(pod);
}

claim::KnownIdle ContainerUse::IdleWith(const state::ClaimRecord& claim) const {
  claim::KnownIdle idle{boot_id_, {}};
  for (const PodUid& pod : claim.pods) {
    if (!MayRun(pod, claim.uid)) idle.pods.insert(pod);
  }
  return idle;
}

}  // namespace devmgr::ledger
