// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a container's devices where they are injected.
#pragma once

#include <absl/status/status.h>
#include <devmgr/container_devices.h>

#include <string>

#include "session.h"

namespace devmgr::ctl {

/// Drops all containers but this one; empty: none.
///   NotFound  there is none of that name; tells those that there are
absl::Status KeepContainer(const std::string& container, PodDevices& devices);

/// Prints the edits behind all CDI devices.
///   FailedPrecondition  some cannot be resolved
absl::Status PrintCdiEdits(const Session& session, const PodDevices& devices);

/// Prints all of it in plain CRI fields.
///   FailedPrecondition  that cannot be: all obstacles, of all containers
absl::Status PrintFallback(const Session& session, const PodDevices& devices);

}  // namespace devmgr::ctl
