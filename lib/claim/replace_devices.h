// SPDX-License-Identifier: Apache-2.0
//
// What a container that is about to start again gives back, because it does not
// work: devices of plugins, for others in their place.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <set>
#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// The container gives back what it holds of these resources, so that it is
/// chosen anew before it starts; but for devices that another container of the
/// pod holds, too. Nothing to do without such.
///   NotFound            the pod is not known
///   FailedPrecondition  it is not Ready, or not in this boot
absl::StatusOr<state::Decision> GiveBackFaulty(
    const state::State& state, const PodUid& pod,
    const ContainerName& container, const std::set<ResourceName>& resources,
    const std::string& boot_id);

/// No other container of the pod holds one of these devices.
bool HoldsAlone(const state::PodRecord& pod, const state::DeviceHold& hold);

}  // namespace devmgr::claim
