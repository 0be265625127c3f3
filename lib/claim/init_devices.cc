// SPDX-License-Identifier: Apache-2.0
#include "claim/init_devices.h"

#include <memory>
#include <utility>

#include "claim/container_answer.h"
#include "common/status.h"

namespace devmgr::claim {

using device::ReservationPhase;
using state::PodRecord;

absl::StatusOr<state::Decision> ReleaseInitDevices(const state::State& state,
                                                   const PodUid& uid,
                                                   const std::string& boot_id) {
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (old->phase != state::PodPhase::kReady || old->boot_id != boot_id) {
    return FailedPreconditionError("pod '{}' is not Ready in this boot",
                                   old->name.ToString());
  }
  auto record = std::make_shared<PodRecord>(*old);
  for (state::DeviceHold& hold : record->holds) {
    if (hold.kind != device::ContainerKind::kInit ||
        hold.phase != ReservationPhase::kCommitted) {
      continue;
    }
    hold.phase = ReservationPhase::kReleased;
    hold.edits = {};
    hold.pre_start = false;
  }
  state::Decision decision;
  decision.kind = state::DecisionKind::kInitEnded;
  if (record->holds == old->holds) return decision;
  DEVMGR_ASSIGN_OR_RETURN(record->answer,
                          AnswerFor(*record, [&](const ClaimUid& claim) {
                            return state.FindClaim(claim);
                          }));
  decision.message = "init containers ended";
  decision.pods = {record->name};
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

}  // namespace devmgr::claim
