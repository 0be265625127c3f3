// SPDX-License-Identifier: Apache-2.0
//
// Which container has which devices, joined from what pods hold, what the
// runtime runs and what drivers have published. Pure.
#pragma once

#include <devmgr/device_holders.h>
#include <devmgr/runtime_source.h>

#include <vector>

#include "view/moment.h"

namespace devmgr::view {

/// By pod, then as in the pod. `runs` may be null: no container has an ID.
std::vector<DeviceHolderInfo> DeviceHoldersOf(const Moment& moment,
                                              const RuntimeSnapshot* runs);

}  // namespace devmgr::view
