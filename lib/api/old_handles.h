// SPDX-License-Identifier: Apache-2.0
//
// Allocations of today for drivers of yesterday: what Kubernetes 1.31 and later
// write as results, as the handles that drivers of 1.30 and before are called
// with.
#pragma once

#include <devmgr/objects.h>

#include <string>
#include <string_view>

#include "api/field.h"

namespace devmgr::api {

/// Adds a handle for each driver of `allocation`, which was decoded from
/// `field`: the driver's opaque configuration as the parameters of class, claim
/// and request, and its devices in the order of the results. For `node`; empty
/// where others reach the devices, too. Where a handle cannot say all of it, it
/// says why instead.
void AddOldHandles(const Field& field, std::string_view node,
                   AllocationResult* allocation);

/// Why no handle of an old API can say what was allocated of the driver, for
/// people. Empty when this one does.
std::string_view WhyNotSayable(const ResourceHandle& handle);

}  // namespace devmgr::api
