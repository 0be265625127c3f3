// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/topology_config.h"

#include <devmgr/topology.h>

#include "devmgrd/config_values.h"

namespace devmgrd {

absl::Status ReadTopologyOptions(const YAML::Node& value,
                                 const std::string& file,
                                 TopologyConfig* config) {
  if (!value.IsMap()) {
    return Invalid(
        "{}: topologyManagerPolicyOptions: must be a map of options to texts",
        Where(file, value));
  }
  for (const auto& entry : value) {
    absl::Status status =
        CheckText(entry.first, file, "topologyManagerPolicyOptions");
    if (!status.ok()) return status;
    const std::string& option = entry.first.Scalar();
    status = CheckText(entry.second, file,
                       "topologyManagerPolicyOptions." + Shown(option));
    if (!status.ok()) return status;
    config->options[option] = entry.second.Scalar();
  }
  return absl::OkStatus();
}

absl::Status CheckTopology(const TopologyConfig& config) {
  const auto parsed =
      devmgr::ParseTopologyOptions(config.policy, config.scope, config.options);
  if (parsed.ok()) return absl::OkStatus();
  // It quotes what is wrong so that it can be shown.
  return Invalid("NUMA alignment: {}", std::string(parsed.status().message()));
}

void PrintTopology(const TopologyConfig& config, YAML::Emitter& out) {
  out << YAML::Key << "topologyManagerPolicy" << YAML::Value << config.policy;
  out << YAML::Key << "topologyManagerScope" << YAML::Value << config.scope;
  out << YAML::Key << "topologyManagerPolicyOptions" << YAML::Value
      << config.options;
  out << YAML::Key << "sysfsDir" << YAML::Value << config.sysfs_dir.string();
}

}  // namespace devmgrd
