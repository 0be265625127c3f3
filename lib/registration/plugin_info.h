// SPDX-License-Identifier: Apache-2.0
//
// What a plugin says of itself is input: it is checked here.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "registration/plugin.h"

namespace devmgr::registration {

/// Reads the answer to GetInfo. The socket is not part of it.
///   InvalidArgument  not a PluginInfo, or one beyond the bounds
absl::StatusOr<Plugin> DecodePluginInfo(const std::string& bytes);

}  // namespace devmgr::registration
