// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// The value of `driverEndpoint`.
///   InvalidArgument  names file, line and key
absl::Status ReadDriverEndpoint(const YAML::Node& value,
                                const std::string& file,
                                DriverEndpointConfig* config);

/// Whether it goes with the rest of the configuration, which is complete.
absl::Status CheckDriverEndpoint(const Config& config);

/// As ReadDriverEndpoint takes it, with its key.
void PrintDriverEndpoint(const DriverEndpointConfig& config,
                         YAML::Emitter& out);

}  // namespace devmgrd
