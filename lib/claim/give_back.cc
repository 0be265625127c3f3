// SPDX-License-Identifier: Apache-2.0
#include "claim/give_back.h"

#include <memory>
#include <utility>

#include "claim/container_answer.h"
#include "common/status.h"

namespace devmgr::claim {

using state::DeviceHold;
using state::PodRecord;

absl::StatusOr<state::Decision> GiveBack(
    const state::State& state, const PodUid& uid, const std::string& boot_id,
    const std::function<bool(const PodRecord& pod, const DeviceHold& hold)>&
        gives) {
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (old->phase != state::PodPhase::kReady || old->boot_id != boot_id) {
    return FailedPreconditionError("pod '{}' is not Ready in this boot",
                                   old->name.ToString());
  }
  auto record = std::make_shared<PodRecord>(*old);
  bool changed = false;
  for (DeviceHold& hold : record->holds) {
    if (hold.phase != device::ReservationPhase::kCommitted ||
        !gives(*old, hold)) {
      continue;
    }
    hold.phase = device::ReservationPhase::kReleased;
    hold.edits = {};
    hold.pre_start = false;
    changed = true;
  }
  state::Decision decision;
  if (!changed) return decision;
  DEVMGR_ASSIGN_OR_RETURN(record->answer,
                          AnswerFor(*record, [&](const ClaimUid& claim) {
                            return state.FindClaim(claim);
                          }));
  decision.pods = {record->name};
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

}  // namespace devmgr::claim
