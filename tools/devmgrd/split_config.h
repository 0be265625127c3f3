// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// The value of `split`: with `local`, by resource of a device plugin, how many
/// devices are for pods of this node.
///   InvalidArgument  names file, line and key; also where devices of slices
///                    are meant, which cannot be kept from a scheduler
absl::Status ReadSplit(const YAML::Node& value, const std::string& file,
                       Config* config);

/// What does not go together with `split`, and with `authority: split`.
absl::Status CheckSplit(const Config& config);

/// As ReadSplit takes it, with its key.
void PrintSplit(const Config& config, YAML::Emitter& out);

}  // namespace devmgrd
