// SPDX-License-Identifier: Apache-2.0
//
// Devices of plugins that two parties share by their number
// (Authority::kSplit).
#pragma once

#include <cstdint>
#include <functional>

#include "claim/device_plan.h"
#include "device/selection.h"

namespace devmgr::claim {

/// What of the free devices is for the other party's pods, where `local_set` of
/// the resource's devices are for pods of this node, those included that such
/// pods hold.
device::KeptDevices KeptFrom(
    bool is_local, const PluginDevices& devices, const ResourceName& resource,
    std::int64_t local_set,
    const std::function<bool(const PodUid& holder)>& is_holder_local);

}  // namespace devmgr::claim
