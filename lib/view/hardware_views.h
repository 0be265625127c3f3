// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <vector>

#include "view/moment.h"

namespace devmgr::view {

/// Says of devices which hardware they are, and which others are the same: by
/// what is published, by the IDs of plugins, and by what pods hold of it.
void AddHardware(const Moment& moment, std::vector<DeviceInfo>* devices);

}  // namespace devmgr::view
