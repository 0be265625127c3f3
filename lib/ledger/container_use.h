// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "claim/prepare_intent.h"
#include "ledger/changes.h"
#include "ledger/resolve_table.h"
#include "state/state.h"

namespace devmgr::ledger {

/// Which pods may have a container that runs with a claim, as far as this
/// manager can tell. A container may run once its start was let through. Who
/// asks before a start (BeforeContainerStart) is believed to do so before each;
/// a pod for which no caller asks may run containers as soon as its answer was
/// read. Of pods that were Ready in this boot before the manager was opened
/// nothing is known: they may. Ends of containers are not heard of.
/// Lives on the manager's thread.
class ContainerUse {
 public:
  /// Both are borrowed and must outlive this. All pods of `state` that were
  /// Ready in this boot count as unknown from now on.
  ContainerUse(const state::State& state, const ResolveTable& answers,
               std::string boot_id);

  /// Somebody asks before he starts a container of the pod.
  void OnAsked(const PodUid& pod) { asked_.insert(pod); }
  /// A container that has to do with these claims may run from now on.
  void OnLetThrough(const PodUid& pod, const std::set<ClaimUid>& claims);
  /// Pods that left the ledger are forgotten.
  void OnCommitted(const Changes& changes);

  /// Pods of the claim of which no container runs with it.
  claim::KnownIdle IdleWith(const state::ClaimRecord& claim) const;

 private:
  bool MayRun(const PodUid& pod, const ClaimUid& claim) const;

  const state::State& state_;
  const ResolveTable& answers_;
  const std::string boot_id_;
  std::set<PodUid> unknown_;
  std::set<PodUid> asked_;
  std::map<PodUid, std::set<ClaimUid>> let_through_;
};

}  // namespace devmgr::ledger
