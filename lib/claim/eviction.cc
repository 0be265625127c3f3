// SPDX-License-Identifier: Apache-2.0
#include "claim/eviction.h"

#include <memory>
#include <utility>

#include "common/counted.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::Decision;
using state::DecisionKind;
using state::PodPhase;
using state::PodRecord;
using state::State;

void RejectEvicted(PodRecord* pod) {
  pod->phase = PodPhase::kRejected;
  pod->reason = pod->eviction->reason;
  pod->message = pod->eviction->message;
  pod->answer = nullptr;
  pod->needs.clear();
  pod->holds.clear();
}

Decision DecisionFor(std::shared_ptr<PodRecord> pod) {
  Decision decision;
  decision.kind = pod->phase == PodPhase::kRejected ? DecisionKind::kEvicted
                                                    : DecisionKind::kEvict;
  decision.pods = {pod->name};
  decision.message = pod->eviction->reason + ": " + pod->eviction->message;
  decision.changes.push_back(state::PutPod{std::move(pod)});
  return decision;
}

}  // namespace

Decision BeginEviction(const State& state, const PodUid& uid,
                       const state::Eviction& eviction) {
  Decision nothing;
  nothing.kind = DecisionKind::kEvict;
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr || old->eviction.has_value() ||
      old->phase == PodPhase::kRejected || old->phase == PodPhase::kReleasing) {
    return nothing;
  }
  auto pod = std::make_shared<PodRecord>(*old);
  pod->eviction = eviction;
  if (pod->phase == PodPhase::kWaiting) RejectEvicted(pod.get());
  return DecisionFor(std::move(pod));
}

absl::StatusOr<Decision> FinishEviction(const State& state, const PodUid& uid) {
  Decision nothing;
  nothing.kind = DecisionKind::kEvicted;
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr || !state::IsEvicting(*old)) return nothing;
  if (!old->claims.empty()) {
    return FailedPreconditionError("pod '{}' still holds {}",
                                   old->name.ToString(),
                                   Counted(old->claims.size(), "claim"));
  }
  auto pod = std::make_shared<PodRecord>(*old);
  RejectEvicted(pod.get());
  return DecisionFor(std::move(pod));
}

Verdict CheckEviction(const State& state, const PodUid& uid) {
  const PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr || !state::IsEvicting(*pod)) return {};
  return {Verdict::Kind::kReject,
          pod->eviction->reason,
          pod->eviction->message,
          {}};
}

}  // namespace devmgr::claim
