// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/runtime_config.h"

#include <devmgr/runtime_report.h>

#include <set>
#include <vector>

#include "devmgrd/config_values.h"

namespace devmgrd {
namespace {

constexpr char kKey[] = "runtimeFromShims";
/// As many shims may report.
constexpr std::size_t kMostShims = 64;

}  // namespace

absl::Status ReadRuntimeFromShims(const YAML::Node& value,
                                  const std::string& file, Config* config) {
  config->runtime_shims.clear();
  if (value.IsScalar()) {
    if (YAML::convert<bool>::decode(value, config->runtime_from_shims)) {
      return absl::OkStatus();
    }
    return Invalid(
        "{}: runtimeFromShims: must be true, false, or a list of names of CRI "
        "shims",
        Where(file, value));
  }
  std::vector<std::string> names;
  absl::Status status =
      ReadTexts(value, file, kKey, "names of CRI shims", &names);
  if (!status.ok()) return status;
  if (names.empty() || names.size() > kMostShims) {
    return Invalid(
        "{}: runtimeFromShims: {} names; there must be 1 to {}, or true for "
        "all shims that report",
        Where(file, value), names.size(), kMostShims);
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!devmgr::IsShimName(name)) {
      return Invalid(
          "{}: runtimeFromShims: '{}' is not a name that a CRI shim can have: "
          "1 to {} letters, digits, '-', '_' and '.'",
          Where(file, value), Shown(name), devmgr::kMaxShimName);
    }
    if (!seen.insert(name).second) {
      return Invalid("{}: runtimeFromShims: '{}' is there twice",
                     Where(file, value), Shown(name));
    }
  }
  config->runtime_from_shims = true;
  config->runtime_shims = std::move(names);
  return absl::OkStatus();
}

absl::Status CheckRuntimeFromShims(const Config& config) {
  if (!config.runtime_from_shims || config.runtime_endpoint.empty()) {
    return absl::OkStatus();
  }
  return Invalid(
      "runtimeFromShims: excludes runtimeEndpoint: what runs is asked of "
      "either '{}' or CRI shims",
      Shown(config.runtime_endpoint.string()));
}

void PrintRuntimeFromShims(const Config& config, YAML::Emitter& out) {
  out << YAML::Key << kKey << YAML::Value;
  if (config.runtime_shims.empty()) {
    out << config.runtime_from_shims;
  } else {
    out << config.runtime_shims;
  }
}

}  // namespace devmgrd
