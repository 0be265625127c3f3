// SPDX-License-Identifier: Apache-2.0
//
// The objects of the source together with what this node decided about claims:
// what an API server would show, had a control plane decided it.
#pragma once

#include <devmgr/host.h>

#include <map>
#include <set>

#include "state/state.h"

namespace devmgr::control {

/// The pod as its status is once the claims that this node made for it are
/// recorded there. What its status says by itself stands.
Pod WithLocalStatus(const Pod& pod, const state::State& state);

/// Follows source and ledger from one snapshot to the next, at a cost of what
/// has changed. Lives on one thread.
class LocalObjects {
 public:
  /// Puts claims that this node made into `objects`, gives claims of the source
  /// the allocation and the reservations that this node decided, and pods the
  /// names of the claims that were made for them. A claim that is in use stays
  /// though the source has it no more, as its finalizer would have it. Each
  /// claim has what drivers say of its devices (`device_statuses`). An object
  /// that did not change stays the same pointer.
  void Show(const state::State& state, ObjectSnapshot* objects);

 private:
  using Records = PersistentMap<state::LocalClaimUid,
                                std::shared_ptr<const state::LocalClaimRecord>>;

  void FollowRecords(const Records& records, std::set<ObjectName>* claims,
                     std::set<ObjectName>* pods);
  // As they are shown now; null: there is none.
  std::shared_ptr<const ResourceClaim> ClaimNow(const ObjectName& name) const;
  std::shared_ptr<const ResourceClaim> DecidedClaim(
      const ObjectName& name) const;
  std::shared_ptr<const Pod> PodNow(const ObjectName& name) const;

  Records records_;  ///< As they were followed last.
  // Of these records.
  std::map<ObjectName, std::set<state::LocalClaimUid>> by_claim_;
  std::map<PodUid, std::set<state::LocalClaimUid>> by_pod_;
  // As the source had them last, and as they were shown.
  ObjectMap<ResourceClaim> source_claims_;
  ObjectMap<ResourceClaim> shown_claims_;
  ObjectMap<ClaimDeviceStatus> statuses_;
  ObjectMap<Pod> source_pods_;
  ObjectMap<Pod> shown_pods_;
};

}  // namespace devmgr::control
