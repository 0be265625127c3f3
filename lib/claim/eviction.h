// SPDX-License-Identifier: Apache-2.0
//
// Decisions about pods that have to leave their devices: pure functions, as in
// prepare_intent.h.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/status_types.h>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// The pod has to leave its devices: it keeps what it holds until it has, and
/// is not admitted or prepared from now on. One that holds nothing is rejected
/// here and now. Nothing for a pod that is not known, is rejected, gives up
/// what it holds, or has to leave already.
state::Decision BeginEviction(const state::State& state, const PodUid& pod,
                              const state::Eviction& eviction);

/// The pod has left, and its drivers have unprepared its claims: it is rejected
/// with the reason of its eviction, and holds nothing. Nothing for a pod that
/// is not known, or does not have to leave.
///   FailedPrecondition  it still holds claims
absl::StatusOr<state::Decision> FinishEviction(const state::State& state,
                                               const PodUid& pod);

/// kReject with what the pod has to leave for; kAdmit: it need not.
Verdict CheckEviction(const state::State& state, const PodUid& pod);

}  // namespace devmgr::claim
