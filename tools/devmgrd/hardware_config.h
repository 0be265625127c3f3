// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/options.h>
#include <yaml-cpp/yaml.h>

#include <string>

namespace devmgrd {

/// The value of `hardware`. Lists are added to what is known without them.
///   InvalidArgument  names file, line and key
absl::Status ReadHardware(const YAML::Node& value, const std::string& file,
                          devmgr::HardwareOptions* hardware);

/// As ReadHardware takes it, with its key.
void WriteHardware(const devmgr::HardwareOptions& hardware, YAML::Emitter& out);

}  // namespace devmgrd
