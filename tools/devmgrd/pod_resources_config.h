// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// The value of `podResources`.
///   InvalidArgument  names file, line and key
absl::Status ReadPodResources(const YAML::Node& value, const std::string& file,
                              PodResourcesConfig* config);

/// As ReadPodResources takes it, with its key.
void PrintPodResources(const PodResourcesConfig& config, YAML::Emitter& out);

}  // namespace devmgrd
