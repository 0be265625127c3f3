// SPDX-License-Identifier: Apache-2.0
//
// Pods that were imported from the checkpoint files of a kubelet, which name
// pods by UID alone and containers by name alone.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// Of a wait for the object of a pod.
inline constexpr char kPodNotShown[] = "PodNotShown";

/// Is there something to record now that the source shows this pod?
bool IsImported(const state::State& state, const PodUid& pod);

/// The source shows an imported pod: it has its name and the kinds of its
/// containers from now on. One that holds no claims has all its containers in
/// its answer; if its object names claims, these are prepared first. One that
/// holds claims becomes Ready by its plan (BookPod). What it holds stays as it
/// is. Nothing when it is not imported (any more).
absl::StatusOr<state::Decision> RecordShown(const state::State& state,
                                            const Pod& pod);

/// What an imported pod waits for whose claims are its own, until it is shown.
Verdict WaitToBeShown(const state::PodRecord& pod);

}  // namespace devmgr::claim
