// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/driver_endpoint_config.h"

#include "devmgrd/config_values.h"
#include "devmgrd/listen_address.h"

namespace devmgrd {

absl::Status ReadDriverEndpoint(const YAML::Node& value,
                                const std::string& file,
                                DriverEndpointConfig* config) {
  if (value.IsScalar() && value.Scalar() == "false") {
    config->off = true;
    return absl::OkStatus();
  }
  if (!value.IsMap()) {
    return Invalid("{}: driverEndpoint: must be a map with drivers, or false",
                   Where(file, value));
  }
  for (const auto& entry : value) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    absl::Status status;
    if (key == "drivers") {
      status = ReadTexts(entry.second, file, "driverEndpoint.drivers",
                         "names of drivers", &config->drivers);
    } else if (key == "listen") {
      status = CheckText(entry.second, file, "driverEndpoint.listen");
      if (status.ok()) config->listen = entry.second.Scalar();
    } else if (key == "kubeconfigDir") {
      status = CheckText(entry.second, file, "driverEndpoint.kubeconfigDir");
      if (status.ok()) config->kubeconfig_dir = entry.second.Scalar();
    } else if (key == "documents" || key == "classic") {
      status = Invalid(
          "{}: driverEndpoint.{}: is not supported yet: only ResourceSlices, "
          "claims and what belongs to them are served",
          Where(file, entry.first), key);
    } else {
      status = Invalid(
          "{}: driverEndpoint: unknown key '{}'; known are drivers, "
          "kubeconfigDir, listen",
          Where(file, entry.first), Shown(key));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckDriverEndpoint(const Config& config) {
  const DriverEndpointConfig& endpoint = config.driver_endpoint;
  if (absl::Status status = ParseListenAddress(endpoint.listen).status();
      !status.ok()) {
    return Invalid("driverEndpoint.listen: {}", std::string(status.message()));
  }
  // Without any it is there where it can be (ServesDrivers).
  if (endpoint.off || endpoint.drivers.empty()) return absl::OkStatus();
  if (HasApiServer(config)) {
    return Invalid(
        "driverEndpoint: there is an API server (apiServer): drivers use that "
        "one, and two would show them different claims");
  }
  if (config.authority != "node") {
    return Invalid(
        "driverEndpoint: authority is '{}', but the node that shows drivers "
        "their claims has to allocate them: authority must be node",
        Shown(config.authority));
  }
  if (config.node_name.empty()) {
    return Invalid(
        "driverEndpoint: nodeName must be set: drivers publish the devices of "
        "a node by its name");
  }
  return absl::OkStatus();
}

void PrintDriverEndpoint(const DriverEndpointConfig& config,
                         YAML::Emitter& out) {
  out << YAML::Key << "driverEndpoint" << YAML::Value;
  if (config.off) {
    out << false;
    return;
  }
  out << YAML::BeginMap;
  out << YAML::Key << "drivers" << YAML::Value << YAML::BeginSeq;
  for (const std::string& driver : config.drivers) out << driver;
  out << YAML::EndSeq;
  out << YAML::Key << "kubeconfigDir" << YAML::Value
      << config.kubeconfig_dir.string();
  out << YAML::Key << "listen" << YAML::Value << config.listen;
  out << YAML::EndMap;
}

}  // namespace devmgrd
