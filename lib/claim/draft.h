// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// Claims and pods as they will be: the projection with the changes of the
/// decision under construction on top.
class Draft {
 public:
  explicit Draft(const state::State& base) : base_(base) {}

  /// Null when there is none, or it was erased.
  const state::ClaimRecord* Claim(const ClaimUid& uid) const {
    const auto changed = claims_.find(uid);
    if (changed != claims_.end()) return changed->second.get();
    return base_.FindClaim(uid);
  }

  state::ClaimRecord* EditClaim(const ClaimUid& uid) {
    auto changed = claims_.find(uid);
    if (changed == claims_.end()) {
      const state::ClaimRecord* old = base_.FindClaim(uid);
      auto copy = old ? std::make_shared<state::ClaimRecord>(*old)
                      : std::make_shared<state::ClaimRecord>();
      copy->uid = uid;
      changed = claims_.emplace(uid, std::move(copy)).first;
    }
    return changed->second.get();
  }

  /// The claim must be in the projection.
  void EraseClaim(const ClaimUid& uid) { claims_[uid] = nullptr; }

  /// As Claim. Valid until the next edit of it.
  const state::PodRecord* Pod(const PodUid& uid) const {
    const auto changed = pods_.find(uid);
    if (changed != pods_.end()) return changed->second.get();
    return base_.FindPod(uid);
  }

  /// The pod must be in the projection.
  state::PodRecord* EditPod(const PodUid& uid) {
    auto changed = pods_.find(uid);
    if (changed == pods_.end()) {
      auto copy = std::make_shared<state::PodRecord>(*base_.FindPod(uid));
      changed = pods_.emplace(uid, std::move(copy)).first;
    }
    return changed->second.get();
  }

  /// The pod must be in the projection.
  void ErasePod(const PodUid& uid) { pods_[uid] = nullptr; }

  state::PodRecord* AddPod(std::shared_ptr<state::PodRecord> pod) {
    return pods_.emplace(pod->uid, pod).first->second.get();
  }

  /// The decision with everything that differs from the projection.
  state::Decision Finish(state::DecisionKind kind, std::string message) {
    state::Decision decision;
    decision.kind = kind;
    decision.message = std::move(message);
    for (auto& [uid, claim] : claims_) {
      const state::ClaimRecord* old = base_.FindClaim(uid);
      if (claim == nullptr) {
        decision.claims.push_back(old->name);
        decision.changes.push_back(state::EraseClaim{uid});
      } else if (old == nullptr || !(*old == *claim)) {
        decision.claims.push_back(claim->name);
        decision.changes.push_back(state::PutClaim{std::move(claim)});
      }
    }
    for (auto& [uid, pod] : pods_) {
      const state::PodRecord* old = base_.FindPod(uid);
      if (pod == nullptr) {
        decision.pods.push_back(old->name);
        decision.changes.push_back(state::ErasePod{uid});
        continue;
      }
      if (old != nullptr && *old == *pod) continue;
      decision.pods.push_back(pod->name);
      decision.changes.push_back(state::PutPod{std::move(pod)});
    }
    return decision;
  }

 private:
  const state::State& base_;
  std::map<ClaimUid, std::shared_ptr<state::ClaimRecord>> claims_;
  std::map<PodUid, std::shared_ptr<state::PodRecord>> pods_;
};

}  // namespace devmgr::claim
