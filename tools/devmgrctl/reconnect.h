// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>

#include "session.h"

namespace devmgr::ctl {

/// A daemon that stopped or is silent may come back.
bool IsLost(const absl::Status& status);

/// Connects, as often as it takes, to a daemon that says when it started.
absl::StatusOr<std::unique_ptr<Inspector>> Reconnect(const Session& session,
                                                     WallTime* started);

}  // namespace devmgr::ctl
