// SPDX-License-Identifier: Apache-2.0
#include "claim/init_devices.h"

#include "claim/give_back.h"
#include "common/status.h"

namespace devmgr::claim {

absl::StatusOr<state::Decision> ReleaseInitDevices(const state::State& state,
                                                   const PodUid& uid,
                                                   const std::string& boot_id) {
  DEVMGR_ASSIGN_OR_RETURN(
      state::Decision decision,
      GiveBack(state, uid, boot_id,
               [](const state::PodRecord&, const state::DeviceHold& hold) {
                 return hold.kind == device::ContainerKind::kInit;
               }));
  decision.kind = state::DecisionKind::kInitEnded;
  if (!decision.changes.empty()) decision.message = "init containers ended";
  return decision;
}

}  // namespace devmgr::claim
