// SPDX-License-Identifier: Apache-2.0
#include "control/release.h"

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "api/meta.h"
#include "control/reservation.h"

namespace devmgr::control {
namespace {

using state::LocalClaimRecord;
using state::LocalClaimUid;

/// Is a pod to keep the claims that it has?
using Keeps = std::function<bool(const PodUid&)>;

std::set<PodUid> Keepers(const LocalClaimRecord& record, const Keeps& keeps) {
  std::set<PodUid> pods;
  const auto add = [&](const PodUid& pod) {
    if (keeps(pod)) pods.insert(pod);
  };
  for (const auto& consumer : record.object->status.reserved_for) {
    add(PodUid{consumer.uid});
  }
  if (!record.pod.value.empty()) add(record.pod);
  return pods;
}

void AddRelease(const state::State& state, const LocalClaimRecord& record,
                const Keeps& keeps, const std::string& now,
                state::Decision* decision) {
  const std::set<PodUid> pods = Keepers(record, keeps);
  // A driver has it: the last reservation goes with what it has prepared.
  const bool is_prepared =
      state.FindClaim(ClaimUid{record.uid.value}) != nullptr;
  Settlement settled = Settle(*record.object, {pods, is_prepared}, now);
  const ResourceClaimStatus& status = settled.claim.status;
  if (settled.fate == ClaimFate::kStays ||
      (is_prepared && status.reserved_for.empty())) {
    return;
  }
  decision->claims.push_back(settled.claim.metadata.FullName());
  const bool is_over =
      settled.fate == ClaimFate::kGoes ||
      (record.origin == state::ClaimOrigin::kSource && !status.allocation);
  if (is_over) {
    decision->changes.push_back(state::EraseLocalClaim{record.uid});
    return;
  }
  auto changed = std::make_shared<LocalClaimRecord>(record);
  changed->object =
      std::make_shared<const ResourceClaim>(std::move(settled.claim));
  decision->changes.push_back(state::PutLocalClaim{std::move(changed)});
}

}  // namespace

state::Decision ReleaseClaims(const state::State& state, std::int64_t now_ms) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kClaimsReleased;
  decision.message = "pods that had them are gone";
  const std::string now = api::TimestampOf(now_ms);
  for (const auto& [uid, record] : state.local_claims) {
    AddRelease(
        state, *record,
        [&](const PodUid& pod) {
          const state::PodRecord* known = state.FindPod(pod);
          return known != nullptr && known->phase != state::PodPhase::kRejected;
        },
        now, &decision);
  }
  return decision;
}

state::Decision UnwindClaims(const state::State& state, const PodUid& pod,
                             std::int64_t now_ms) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kClaimsReleased;
  decision.message = "the pod cannot have its other devices now";
  const state::PodRecord* known = state.FindPod(pod);
  // It has them already, or its devices of plugins are being had.
  if (known != nullptr && known->phase != state::PodPhase::kWaiting) {
    return decision;
  }
  const std::string now = api::TimestampOf(now_ms);
  for (const auto& [uid, record] : state.local_claims) {
    if (!Keepers(*record, [&](const PodUid& other) {
           return other == pod;
         }).empty()) {
      AddRelease(
          state, *record, [&](const PodUid& other) { return other != pod; },
          now, &decision);
    }
  }
  return decision;
}

}  // namespace devmgr::control
