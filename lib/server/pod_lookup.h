// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>

#include <memory>

namespace devmgr::server {

/// What the containers of a pod get, for a caller that is about to create one
/// and has to know whether to wait. `name` is only where the source is looked
/// at. Waits for the manager's thread, never for disk or drivers.
///   NotFound            neither the ledger nor the source knows such a pod
///   Unavailable         it has no answer yet; the message names what is late
///   FailedPrecondition  it will get none: it is rejected, or malformed
absl::StatusOr<std::shared_ptr<const PodDevices>> LookUpPod(
    const DeviceManager& manager, const PodUid& uid, const ObjectName& name);

}  // namespace devmgr::server
