// SPDX-License-Identifier: Apache-2.0
//
// What init containers give back when they have ended: the devices of plugins
// that no other container of the pod has taken over.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// The init containers have ended: what they had is the pod's other containers'
/// that have taken it over, or free. Nothing to do without such.
///   NotFound            the pod is not known
///   FailedPrecondition  it is not Ready, or not in this boot
absl::StatusOr<state::Decision> ReleaseInitDevices(const state::State& state,
                                                   const PodUid& pod,
                                                   const std::string& boot_id);

}  // namespace devmgr::claim
