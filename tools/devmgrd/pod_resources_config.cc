// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/pod_resources_config.h"

#include "devmgrd/config_values.h"

namespace devmgrd {

absl::Status ReadPodResources(const YAML::Node& value, const std::string& file,
                              PodResourcesConfig* config) {
  if (value.IsScalar() && value.Scalar() == "false") {
    config->off = true;
    return absl::OkStatus();
  }
  if (!value.IsMap()) {
    return Invalid("{}: podResources: must be a map with socket, or false",
                   Where(file, value));
  }
  for (const auto& entry : value) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (key != "socket") {
      return Invalid("{}: podResources: unknown key '{}'; known is socket",
                     Where(file, entry.first), Shown(key));
    }
    absl::Status status = CheckText(entry.second, file, "podResources.socket");
    if (!status.ok()) return status;
    if (entry.second.Scalar().empty()) {
      return Invalid(
          "{}: podResources.socket: is empty; with podResources: false nothing "
          "is served",
          Where(file, entry.second));
    }
    config->socket = entry.second.Scalar();
  }
  return absl::OkStatus();
}

void PrintPodResources(const PodResourcesConfig& config, YAML::Emitter& out) {
  out << YAML::Key << "podResources" << YAML::Value;
  if (config.off) {
    out << false;
    return;
  }
  out << YAML::BeginMap;
  out << YAML::Key << "socket" << YAML::Value << config.socket.string();
  out << YAML::EndMap;
}

}  // namespace devmgrd
