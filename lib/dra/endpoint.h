// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dra/driver_instance.h"

namespace devmgr::dra {

/// Where a driver may have its service socket: below one of `directories`, by
/// its name as well as behind all symbolic links; empty: anywhere. The socket
/// need not be there yet. Follows the kubelet's pkg/kubelet/cm/dra/plugin,
/// which does not follow links.
///   InvalidArgument  the message says what is wrong with it
absl::Status CheckEndpoint(
    const std::string& endpoint,
    const std::vector<std::filesystem::path>& directories);

/// Dials as `dialer` does, if the links still lead below `directories`, and if
/// the right user listens: a plugin may offer its own sockets, and `owner`,
/// the process that listens on its registration socket, those of all users if
/// it is root.
///   InvalidArgument   as for CheckEndpoint
///   PermissionDenied  somebody else listens there
Dialer GuardedDialer(Dialer dialer,
                     std::vector<std::filesystem::path> directories,
                     std::optional<uid_t> owner);

}  // namespace devmgr::dra
