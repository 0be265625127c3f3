// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/runtime_inspection.h>

#include <string>

#include "cri/messages.h"

namespace devmgr::shim {

/// A ContainerStatusRequest, encoded.
std::string ContainerStatusRequest(const std::string& id, bool verbose = true);

/// What a runtime made of a container, from its answer to that, the format of
/// which is the runtime's own.
///   FailedPrecondition  it cannot be read; names what is missing
absl::StatusOr<RuntimeContainerConfig> ConfigIn(cri::ContainerStatus status);

}  // namespace devmgr::shim
