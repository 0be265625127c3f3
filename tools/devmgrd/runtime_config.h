// SPDX-License-Identifier: Apache-2.0
//
// Where it is known from what runs, as the configuration file says.
#pragma once

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// The value of `runtimeFromShims`: true, false, or the names of shims.
///   InvalidArgument  names file, line and key
absl::Status ReadRuntimeFromShims(const YAML::Node& value,
                                  const std::string& file, Config* config);

/// InvalidArgument: it is asked of a runtime, too.
absl::Status CheckRuntimeFromShims(const Config& config);

/// As ReadRuntimeFromShims takes it, with its key.
void PrintRuntimeFromShims(const Config& config, YAML::Emitter& out);

}  // namespace devmgrd
