// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// The value of `topologyManagerPolicyOptions`: a map of options to texts, as
/// the kubelet has it; numbers and true or false are taken as texts.
///   InvalidArgument  names file, line and key
absl::Status ReadTopologyOptions(const YAML::Node& value,
                                 const std::string& file,
                                 TopologyConfig* config);

/// Policy, scope and options: they are checked where they are used.
absl::Status CheckTopology(const TopologyConfig& config);

/// All keys of it.
void PrintTopology(const TopologyConfig& config, YAML::Emitter& out);

}  // namespace devmgrd
