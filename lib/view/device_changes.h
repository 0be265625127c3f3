// SPDX-License-Identifier: Apache-2.0
//
// What decisions of the ledger change about devices. What a pod holds is a
// function of one state; a change is the difference of two. So all that is ever
// allocated is released once, or is still held. Pure.
#pragma once

#include <devmgr/device_changes.h>

#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::view {

/// What `batch` changes, which leads from `before` to `after`: releases, then
/// allocations, then hand-overs, then what the ledger keeps of health. Costs as
/// much as what the pods of the batch hold. With their tokens, without a
/// process; the last one has all of the decision.
std::vector<DeviceChange> ChangesOf(const state::State& before,
                                    const state::State& after,
                                    const state::Batch& batch);

/// What pods hold, as kHeld, by UID; without tokens.
///
/// Of device plugins that is what is committed. Of claims it is what drivers
/// have prepared, until they have unprepared it, or the pod gives it up before
/// that; while a driver prepares it anew there is nothing.
std::vector<DeviceChange> HoldingsOf(const state::State& state, WallTime time);

}  // namespace devmgr::view
