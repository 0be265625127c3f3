// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "api/problems.h"

namespace devmgr::cdi {

/// OK, or InvalidArgument with the errors in one line, the first ones in full.
absl::Status StatusOf(api::Problems& problems);

}  // namespace devmgr::cdi
