// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testing/driver_api.h"
#include "testing/fake_driver_wire.h"

namespace devmgr::testing {

/// Claims by UID, as they were read for one call, or why they cannot be
/// prepared.
using ClaimsRead = std::map<std::string, absl::StatusOr<ResourceClaim>>;

/// Reads `claims` from the API server, one after the other and each anew, as
/// the official library does for NodePrepareResources. `done` is called once,
/// later, unless `api` is destroyed before. Errors of a claim are those of
/// DriverApi::Answered and of CheckAllocated.
void ReadClaims(DriverApi& api, const std::vector<ClaimReference>& claims,
                std::function<void(ClaimsRead)> done);

}  // namespace devmgr::testing
