// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registration/plugin.h"
#include "rpc/connection.h"

namespace devmgr::registration {

/// Dials registration sockets and speaks `pluginregistration.Registration`:
/// GetInfo within 1 s, NotifyRegistrationStatus within 5 s. `runtime` is
/// borrowed and must outlive the dialer and its sockets.
PluginDialer GrpcPluginDialer(rpc::Runtime& runtime);

}  // namespace devmgr::registration
