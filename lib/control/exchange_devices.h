// SPDX-License-Identifier: Apache-2.0
//
// Other devices for claims that this node allocated and that a container is
// about to start with, because theirs do not work: allocated anew, unprepared
// and prepared again, in one decision. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::control {

/// Whether the container alone uses the claim, and all of it is prepared: then
/// it can be exchanged while the container does not run.
bool MayExchange(const state::State& state, const state::PodRecord& pod,
                 const ContainerName& container, const ClaimUid& claim);

/// The claims as they are once they are not allocated, as changes of a
/// provision. Those that this node has not allocated are left out.
std::vector<state::Change> Deallocated(const state::State& state,
                                       const std::set<ClaimUid>& claims);

/// `provided` are the changes of a provision by which the claims have other
/// devices. Their drivers unprepare what they prepared, and prepare the new
/// ones; until then the pod is Preparing.
///   FailedPrecondition  a claim would be another driver's, or is not prepared
///                       any more, or the pod not Ready in this boot
absl::StatusOr<state::Decision> ExchangeDevices(
    const state::State& state, const PodUid& pod,
    const ContainerName& container, const std::set<ClaimUid>& claims,
    const std::vector<state::Change>& provided, const std::string& boot_id);

}  // namespace devmgr::control
