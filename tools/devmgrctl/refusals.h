// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/allocate.h>

#include "session.h"

namespace devmgr::ctl {

/// Why a request got no devices, on stderr: devices with one reason together.
void PrintRefusals(const Session& session, const RefusedRequest& request);

}  // namespace devmgr::ctl
