// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/split_config.h"

#include "devmgrd/config_values.h"

namespace devmgrd {
namespace {

constexpr std::int64_t kMostDevices = 1'000'000;

constexpr char kNoSlices[] =
    "only devices of device plugins can be split, by their number; devices of "
    "ResourceSlices cannot, since a scheduler sees all that a driver publishes";

absl::Status ReadLocal(const YAML::Node& value, const std::string& file,
                       Config* config) {
  if (!value.IsMap()) {
    return devmgrd::Invalid(
        "{}: split.local: must be a map of resources to numbers: {}",
        Where(file, value), kNoSlices);
  }
  for (const auto& set : value) {
    absl::Status status = CheckText(set.first, file, "split.local");
    if (!status.ok()) return status;
    const std::string name = set.first.Scalar();
    if (!set.second.IsScalar()) {
      return devmgrd::Invalid(
          "{}: split.local.{}: must be a number of devices: {}",
          Where(file, set.second), Shown(name), kNoSlices);
    }
    std::int64_t count = 0;
    if (!YAML::convert<std::int64_t>::decode(set.second, count) || count < 0 ||
        count > kMostDevices) {
      return devmgrd::Invalid(
          "{}: split.local.{}: must be a whole number from 0 to {}",
          Where(file, set.second), Shown(name), kMostDevices);
    }
    if (name.find('/') == std::string::npos) {
      return devmgrd::Invalid(
          "{}: split.local.{}: is no name of an extended resource, "
          "such as example.com/gpu: {}",
          Where(file, set.first), Shown(name), kNoSlices);
    }
    config->split_local[name] = count;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSplit(const YAML::Node& value, const std::string& file,
                       Config* config) {
  if (!value.IsMap()) {
    return Invalid("{}: split: must be a map with local", Where(file, value));
  }
  for (const auto& entry : value) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (key == "local") {
      absl::Status status = ReadLocal(entry.second, file, config);
      if (!status.ok()) return status;
    } else if (key == "driver" || key == "selector" || key == "settle") {
      return Invalid("{}: split.{}: {}", Where(file, entry.first), key,
                     kNoSlices);
    } else {
      return Invalid("{}: split: unknown key '{}'; known is local",
                     Where(file, entry.first), Shown(key));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSplit(const Config& config) {
  if (config.authority != "split") {
    if (config.split_local.empty()) return absl::OkStatus();
    return Invalid(
        "split: is of use with authority: split only, and authority "
        "is {}",
        Shown(config.authority));
  }
  if (HasApiServer(config) && config.with_manifests) return absl::OkStatus();
  return Invalid(
      "authority: split shares the devices out between pods of an API server "
      "and pods of manifests: {} must be set",
      "apiServer and apiServer.manifests");
}

void PrintSplit(const Config& config, YAML::Emitter& out) {
  out << YAML::Key << "split" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "local" << YAML::Value << config.split_local;
  out << YAML::EndMap;
}

}  // namespace devmgrd
