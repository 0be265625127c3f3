// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dra/claims.h"
#include "dra/driver_instance.h"

namespace devmgr::dra {

// Both ask one endpoint about claims, by the API that it speaks: all at once,
// or, where the API has one claim in each call, side by side, so many at a time
// that others get their turn. A method that the driver does not know is
// followed by that of the next older API that it may speak. On the instance's
// executor; `done` runs there later, as in Drivers.

void PrepareClaims(const std::shared_ptr<DriverInstance>& instance,
                   std::vector<ClaimReference> claims,
                   std::function<void(PrepareAnswer)> done);
void UnprepareClaims(const std::shared_ptr<DriverInstance>& instance,
                     std::vector<ClaimReference> claims,
                     std::function<void(UnprepareAnswer)> done);

}  // namespace devmgr::dra
