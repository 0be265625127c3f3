// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::control {

/// Takes reservations of pods that are gone, or rejected, off the claims that
/// this node allocates. A claim that none is left for loses its allocation once
/// the last driver has unprepared it, and goes if it was made for a pod.
/// Nothing to decide where all pods live.
state::Decision ReleaseClaims(const state::State& state, std::int64_t now_ms);

/// The pod does not get the rest of what it needs: it gives back what it was
/// allocated and has not used, so that others may have it.
state::Decision UnwindClaims(const state::State& state, const PodUid& pod,
                             std::int64_t now_ms);

}  // namespace devmgr::control
