// SPDX-License-Identifier: Apache-2.0
//
// The two halves of a claim: what it asks for, and what it was allocated.
#pragma once

#include <devmgr/objects.h>

#include <optional>
#include <vector>

#include "api/field.h"
#include "api/resource.h"

namespace devmgr::api {

/// The spec of a claim. What matters to schedulers alone is only remarked on
/// when the claim `is_allocated`: its pod is to run all the same.
ResourceClaimSpec DecodeClaimSpec(const Field& field, ResourceVersion version,
                                  bool is_allocated);

/// `status.allocation` since v1alpha3. What is wrong with parts that
/// preparing the devices does not need is only remarked on.
AllocationResult DecodeAllocation(const Field& field);

/// `status.devices`, what drivers say of the devices; remarks only.
std::vector<AllocatedDeviceStatus> DecodeDeviceStatus(
    const Field& list, const std::optional<AllocationResult>& allocation);
/// One entry of it as an API server checks what a driver writes: errors.
void CheckDeviceStatus(const Field& entry);

}  // namespace devmgr::api
