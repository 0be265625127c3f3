// SPDX-License-Identifier: Apache-2.0
//
// The health of devices as pods and devices show it. Pure.
#pragma once

#include <devmgr/status_types.h>

#include <cstdint>
#include <vector>

#include "state/state.h"
#include "view/moment.h"

namespace devmgr::view {

/// What is known of a driver's device; by default Unknown.
device::EffectiveHealth HealthOf(const DriversHealth& health,
                                 const state::DeviceKey& device,
                                 std::int64_t steady_ms);

/// The part of PodInfo::allocated_resources that containers have by claims.
std::vector<ContainerResourceStatus> ClaimedResourcesOf(
    const DriversHealth& health, std::int64_t steady_ms,
    const state::State& state, const state::PodRecord& pod);

/// PodInfo::allocated_resources.
std::vector<ContainerResourceStatus> AllocatedResourcesOf(
    const Moment& moment, const state::PodRecord& pod);

/// Says of the devices of drivers how they are.
void AddDriversHealth(const Moment& moment, std::vector<DeviceInfo>* devices);

}  // namespace devmgr::view
