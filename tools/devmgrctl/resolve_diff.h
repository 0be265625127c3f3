// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "session.h"

namespace devmgr::ctl {

/// resolve --diff: a container of the runtime against the ledger.
absl::Status DiffContainer(const Session& session);

}  // namespace devmgr::ctl
