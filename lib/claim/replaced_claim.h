// SPDX-License-Identifier: Apache-2.0
//
// Claims that were deleted and created again under their name, or allocated
// anew, while pods hold what they were. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <string>

#include "claim/pod_plan.h"
#include "state/state.h"

namespace devmgr::claim {

/// Reason of a pod whose claim has a device that this node allocated to another
/// claim.
inline constexpr char kDeviceDoubleClaimed[] = "DeviceDoubleClaimed";

/// May a pod reference this claim now? Waits while it is being unprepared,
/// while an older claim of its name, or one that is owed, holds what it needs,
/// while this node has given a device of it to another claim, or another driver
/// or a device plugin its hardware to another pod, and while as many pods have
/// it as may.
Verdict CheckPlanned(const state::State& state, const PlannedClaim& planned,
                     const PodUid& pod, const std::string& boot_id);

/// Does the pod hold the claim as it was: of another UID, because it has been
/// re-created, or allocated from other drivers?
bool HoldsReplaced(const state::State& state, const PlannedClaim& planned,
                   const PodUid& pod);

/// Does the pod hold a claim whose name another object has by now, whether or
/// not that one is allocated and reserved for it?
bool HoldsRecreated(const state::State& state, const ObjectSnapshot& objects,
                    const PodUid& pod);

/// The pod references claims, and no container can run with them: it has not
/// been Ready in this boot. So it may give them up to be booked anew.
bool MayBookAnew(const state::PodRecord& pod, const std::string& boot_id);

}  // namespace devmgr::claim
