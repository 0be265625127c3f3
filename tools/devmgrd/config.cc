// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <devmgr/duration.h>
#include <devmgr/feature_gates.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "devmgrd/config_values.h"
#include "devmgrd/control_users.h"
#include "devmgrd/driver_endpoint_config.h"
#include "devmgrd/hardware_config.h"
#include "devmgrd/listen_address.h"
#include "devmgrd/pod_resources_config.h"
#include "devmgrd/runtime_config.h"
#include "devmgrd/split_config.h"
#include "devmgrd/topology_config.h"

namespace devmgrd {
namespace {

/// The keys that hold one text, and where it goes.
using Setter = std::function<void(Config&, const std::string&)>;
constexpr std::string_view kUnixScheme = "unix://";

const std::map<std::string, Setter>& TextKeys() {
  static const auto* keys = new std::map<std::string, Setter>{
      {"stateDir", [](Config& c, const auto& v) { c.state_dir = v; }},
      {"devicePluginDir",
       [](Config& c, const auto& v) { c.device_plugin_dir = v; }},
      {"pluginRegistryDir",
       [](Config& c, const auto& v) { c.plugin_registry_dir = v; }},
      {"manifestsDir", [](Config& c, const auto& v) { c.manifests_dir = v; }},
      {"endpoint", [](Config& c, const auto& v) { c.endpoint = v; }},
      {"runtimeEndpoint",
       [](Config& c, const auto& v) {
         // Others write it as an address.
         const bool is_url = v.rfind(kUnixScheme, 0) == 0;
         c.runtime_endpoint = is_url ? v.substr(kUnixScheme.size()) : v;
       }},
      {"mirrorKubeletCheckpoint",
       [](Config& c, const auto& v) { c.mirror_kubelet_checkpoint = v; }},
      {"nodeName", [](Config& c, const auto& v) { c.node_name = v; }},
      {"actuate", [](Config& c, const auto& v) { c.actuate = v; }},
      {"authority", [](Config& c, const auto& v) { c.authority = v; }},
      {"profile", [](Config& c, const auto& v) { c.profile = v; }},
      {"recovery", [](Config& c, const auto& v) { c.recovery = v; }},
      {"logLevel", [](Config& c, const auto& v) { c.log_level = v; }},
      {"topologyManagerPolicy",
       [](Config& c, const auto& v) { c.topology.policy = v; }},
      {"topologyManagerScope",
       [](Config& c, const auto& v) { c.topology.scope = v; }},
      {"sysfsDir", [](Config& c, const auto& v) { c.topology.sysfs_dir = v; }},
      {"metricsAddress",
       [](Config& c, const auto& v) { c.metrics_address = v; }},
      {"metricsNames", [](Config& c, const auto& v) { c.metrics_names = v; }},
  };
  return *keys;
}

/// The keys that hold a duration.
const std::map<std::string, std::chrono::milliseconds Config::*>&
DurationKeys() {
  static const auto* keys =
      new std::map<std::string, std::chrono::milliseconds Config::*>{
          {"pluginCallTimeout", &Config::plugin_call_timeout},
          {"pluginGracePeriod", &Config::plugin_grace_period},
          {"admissionWait", &Config::admission_wait},
          {"starvationLimit", &Config::starvation_limit},
          {"unhealthyFor", &Config::unhealthy_for},
          {"healthyFor", &Config::healthy_for},
      };
  return *keys;
}

const std::map<std::string, bool Config::*>& BoolKeys() {
  static const auto* keys = new std::map<std::string, bool Config::*>{
      {"draCompat", &Config::dra_compat},
      {"podIdentityMetadata", &Config::pod_identity_metadata},
      {"refuseEditConflicts", &Config::refuse_edit_conflicts},
      {"admissionAudit", &Config::admission_audit},
  };
  return *keys;
}

absl::Status ReadDirectories(const YAML::Node& value, const std::string& file,
                             Config* config) {
  std::vector<std::string> directories;
  absl::Status status =
      ReadTexts(value, file, "cdiSpecDirs", "directories", &directories);
  config->cdi_spec_dirs.assign(directories.begin(), directories.end());
  return status;
}

absl::Status ReadGateMap(const YAML::Node& value, const std::string& file,
                         Config* config) {
  if (!value.IsMap()) {
    return Invalid("{}: featureGates: must be a map of gates to true or false",
                   Where(file, value));
  }
  for (const auto& gate : value) {
    absl::Status status = CheckText(gate.first, file, "featureGates");
    if (!status.ok()) return status;
    bool on = false;
    if (!gate.second.IsScalar() ||
        !YAML::convert<bool>::decode(gate.second, on)) {
      return Invalid("{}: featureGates.{}: must be true or false",
                     Where(file, gate.second), Shown(gate.first.Scalar()));
    }
    config->feature_gates[gate.first.Scalar()] = on;
  }
  return absl::OkStatus();
}

absl::Status ReadApiServer(const YAML::Node& value, const std::string& file,
                           Config* config) {
  if (!value.IsMap()) {
    return Invalid("{}: apiServer: must be a map with kubeconfig or inCluster",
                   Where(file, value));
  }
  for (const auto& entry : value) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    absl::Status status;
    if (key == "kubeconfig") {
      status = CheckText(entry.second, file, "apiServer.kubeconfig");
      if (status.ok()) config->kubeconfig = entry.second.Scalar();
    } else if (key == "inCluster") {
      status = ReadBool(entry.second, file, "apiServer.inCluster",
                        &config->in_cluster);
    } else if (key == "manifests") {
      status = ReadBool(entry.second, file, "apiServer.manifests",
                        &config->with_manifests);
    } else if (key == "nodeAgent") {
      status = ReadBool(entry.second, file, "apiServer.nodeAgent",
                        &config->node_agent);
    } else if (key == "qps") {
      status = ReadPositive(entry.second, file, "apiServer.qps", &config->qps);
    } else if (key == "burst") {
      status =
          ReadPositive(entry.second, file, "apiServer.burst", &config->burst);
    } else {
      status = Invalid(
          "{}: apiServer: unknown key '{}'; known are burst, inCluster, "
          "kubeconfig, manifests, nodeAgent, qps",
          Where(file, entry.first), Shown(key));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadDraApis(const YAML::Node& value, const std::string& file,
                         Config* config) {
  static constexpr std::string_view kVersions[] = {
      "v1", "v1beta1", "v1alpha4", "v1alpha3", "v1alpha2", "v1alpha1"};
  if (!value.IsMap()) {
    return Invalid("{}: draApis: must be a map of drivers to versions",
                   Where(file, value));
  }
  for (const auto& entry : value) {
    absl::Status status = CheckText(entry.first, file, "draApis");
    if (!status.ok()) return status;
    const std::string text =
        entry.second.IsScalar() ? entry.second.Scalar() : "";
    if (std::find(std::begin(kVersions), std::end(kVersions), text) ==
        std::end(kVersions)) {
      return Invalid("{}: draApis.{}: must be one of {}",
                     Where(file, entry.second), Shown(entry.first.Scalar()),
                     fmt::join(kVersions, ", "));
    }
    config->dra_apis[entry.first.Scalar()] = text;
  }
  return absl::OkStatus();
}

absl::Status ReadHealthPolicy(const YAML::Node& value, const std::string& file,
                              Config* config) {
  if (!value.IsMap()) {
    return Invalid(
        "{}: healthPolicy: must be a map of resources and drivers to report, "
        "fail, drain or replace",
        Where(file, value));
  }
  for (const auto& policy : value) {
    absl::Status status = CheckText(policy.first, file, "healthPolicy");
    if (!status.ok()) return status;
    const std::string text =
        policy.second.IsScalar() ? policy.second.Scalar() : "";
    if (text != "report" && text != "fail" && text != "drain" &&
        text != "replace") {
      return Invalid(
          "{}: healthPolicy.{}: must be report, fail, drain or "
          "replace",
          Where(file, policy.second), Shown(policy.first.Scalar()));
    }
    config->health_policy[policy.first.Scalar()] = text;
  }
  return absl::OkStatus();
}

/// `block`, `defer`, or `forgiveAfter: 1h`.
absl::StatusOr<devmgr::DebtPolicy> DebtPolicyOf(const YAML::Node& value,
                                                const std::string& where) {
  using Kind = devmgr::DebtPolicy::Kind;
  if (value.IsScalar() && value.Scalar() == "block") {
    return devmgr::DebtPolicy{Kind::kBlock};
  }
  if (value.IsScalar() && value.Scalar() == "defer") {
    return devmgr::DebtPolicy{Kind::kDefer};
  }
  if (value.IsMap() && value.size() == 1 && value["forgiveAfter"]) {
    const YAML::Node after = value["forgiveAfter"];
    const auto duration = devmgr::ParseDuration(
        after.IsScalar() ? after.Scalar() : std::string());
    if (duration.has_value() && duration->count() > 0) {
      return devmgr::DebtPolicy{Kind::kForgive, *duration};
    }
    return Invalid("{}.forgiveAfter: must be a duration such as 30s, 5m, 1h",
                   where);
  }
  return Invalid("{}: must be block, defer, or a map with forgiveAfter", where);
}

absl::Status ReadDebtPolicy(const YAML::Node& value, const std::string& file,
                            Config* config) {
  if (!value.IsMap()) {
    return Invalid("{}: debtPolicy: must be a map of drivers to policies",
                   Where(file, value));
  }
  for (const auto& entry : value) {
    absl::Status status = CheckText(entry.first, file, "debtPolicy");
    if (!status.ok()) return status;
    const std::string& driver = entry.first.Scalar();
    const auto policy = DebtPolicyOf(
        entry.second, fmt::format("{}: debtPolicy.{}",
                                  Where(file, entry.second), Shown(driver)));
    if (!policy.ok()) return policy.status();
    config->debt_policy[driver] = *policy;
  }
  return absl::OkStatus();
}

void WriteDebtPolicy(const Config& config, YAML::Emitter& out) {
  out << YAML::Key << "debtPolicy" << YAML::Value << YAML::BeginMap;
  for (const auto& [driver, policy] : config.debt_policy) {
    out << YAML::Key << driver << YAML::Value;
    switch (policy.kind) {
      case devmgr::DebtPolicy::Kind::kBlock:
        out << "block";
        break;
      case devmgr::DebtPolicy::Kind::kDefer:
        out << "defer";
        break;
      case devmgr::DebtPolicy::Kind::kForgive:
        out << YAML::BeginMap << YAML::Key << "forgiveAfter" << YAML::Value
            << devmgr::FormatDuration(policy.forgive_after) << YAML::EndMap;
        break;
    }
  }
  out << YAML::EndMap;
}

absl::Status ReadDuration(const YAML::Node& value, const std::string& file,
                          const std::string& key,
                          std::chrono::milliseconds* to) {
  const auto duration =
      devmgr::ParseDuration(value.IsScalar() ? value.Scalar() : std::string());
  if (!duration.has_value() || duration->count() <= 0) {
    return Invalid("{}: {}: must be a duration such as 500ms, 30s, 5m, 1h",
                   Where(file, value), key);
  }
  *to = *duration;
  return absl::OkStatus();
}

/// Every key that there is, for messages.
std::vector<std::string> KnownKeys() {
  std::vector<std::string> known = {"apiServer",
                                    "cdiSpecDirs",
                                    "controlUsers",
                                    "debtPolicy",
                                    "draApis",
                                    "driverEndpoint",
                                    "featureGates",
                                    "hardware",
                                    "healthPolicy",
                                    "podResources",
                                    "runtimeFromShims",
                                    "split",
                                    "topologyManagerPolicyOptions",
                                    "unknownIsUnhealthy"};
  for (const auto& [key, unused] : BoolKeys()) known.push_back(key);
  for (const auto& [key, unused] : TextKeys()) known.push_back(key);
  for (const auto& [key, unused] : DurationKeys()) known.push_back(key);
  std::sort(known.begin(), known.end());
  return known;
}

absl::Status ReadEntry(const YAML::Node& key, const YAML::Node& value,
                       const std::string& file, Config* config) {
  const std::string name = key.IsScalar() ? key.Scalar() : "";
  if (name == "apiServer") return ReadApiServer(value, file, config);
  if (name == "cdiSpecDirs") return ReadDirectories(value, file, config);
  if (name == "controlUsers") {
    return ReadTexts(value, file, name, "users", &config->control_users);
  }
  if (name == "driverEndpoint") {
    return ReadDriverEndpoint(value, file, &config->driver_endpoint);
  }
  if (name == "draApis") return ReadDraApis(value, file, config);
  if (name == "featureGates") return ReadGateMap(value, file, config);
  if (name == "hardware") return ReadHardware(value, file, &config->hardware);
  if (name == "healthPolicy") return ReadHealthPolicy(value, file, config);
  if (name == "unknownIsUnhealthy") {
    return ReadTexts(value, file, name, "resources and drivers",
                     &config->unknown_is_unhealthy);
  }
  if (name == "runtimeFromShims") {
    return ReadRuntimeFromShims(value, file, config);
  }
  if (name == "podResources") {
    return ReadPodResources(value, file, &config->pod_resources);
  }
  if (name == "topologyManagerPolicyOptions") {
    return ReadTopologyOptions(value, file, &config->topology);
  }
  if (name == "split") return ReadSplit(value, file, config);
  if (name == "debtPolicy") return ReadDebtPolicy(value, file, config);
  if (const auto flag = BoolKeys().find(name); flag != BoolKeys().end()) {
    return ReadBool(value, file, name, &(config->*flag->second));
  }
  if (const auto duration = DurationKeys().find(name);
      duration != DurationKeys().end()) {
    return ReadDuration(value, file, name, &(config->*duration->second));
  }
  const auto setter = TextKeys().find(name);
  if (setter == TextKeys().end()) {
    return Invalid("{}: unknown key '{}'; known are {}", Where(file, key),
                   Shown(name), fmt::join(KnownKeys(), ", "));
  }
  absl::Status status = CheckText(value, file, name);
  if (!status.ok()) return status;
  setter->second(*config, value.Scalar());
  return absl::OkStatus();
}

absl::Status CheckOneOf(std::string_view what, const std::string& value,
                        const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
    return absl::OkStatus();
  }
  return Invalid("{}: '{}' is not one of {}", what, Shown(value),
                 fmt::join(allowed, ", "));
}

}  // namespace

Config ConfigBelow(const std::filesystem::path& root) {
  Config config;
  config.root = root;
  config.state_dir = root / "state";
  config.device_plugin_dir = root / "device-plugins";
  config.plugin_registry_dir = root / "plugins_registry";
  config.manifests_dir = root / "manifests";
  // Where stock drivers write is looked at, too; what lies below the root wins.
  config.cdi_spec_dirs.push_back(root / "cdi");
  config.endpoint = root / "devmgr.sock";
  config.pod_resources.socket = root / "pod-resources" / "kubelet.sock";
  config.driver_endpoint.kubeconfig_dir = root / "kubeconfig";
  return config;
}

absl::Status ReadConfig(std::string_view text, const std::string& file,
                        Config* config) {
  if (!IsUtf8(std::string(text))) {
    return Invalid("{}: is not UTF-8", file);
  }
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return Invalid("{}:{}: {}", file, error.mark.line + 1,
                   Shown(error.msg, 200));
  }
  if (root.IsNull()) return absl::OkStatus();
  if (!root.IsMap()) return Invalid("{}: must be a map of keys", file);
  for (const auto& entry : root) {
    absl::Status status = ReadEntry(entry.first, entry.second, file, config);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void SetText(const std::string& key, const std::string& value, Config* config) {
  TextKeys().at(key)(*config, value);
}

absl::Status ReadFeatureGates(std::string_view text, Config* config) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto equals = item.find('=');
    const std::string_view value =
        equals == item.npos ? "" : item.substr(equals + 1);
    if (value != "true" && value != "false") {
      return Invalid("feature gate '{}': must be GATE=true or GATE=false",
                     Shown(item));
    }
    config->feature_gates[std::string(item.substr(0, equals))] =
        value == "true";
  }
  return absl::OkStatus();
}

bool HasApiServer(const Config& config) {
  return !config.kubeconfig.empty() || config.in_cluster;
}

bool ReadsManifests(const Config& config) {
  return !HasApiServer(config) || config.with_manifests;
}

bool ServesDrivers(const Config& config) {
  return !config.driver_endpoint.off && !HasApiServer(config) &&
         config.authority == "node" && !config.node_name.empty();
}

void CompleteConfig(Config* config) {
  // Another word for it, from the time when manifests were the only source.
  if (config->actuate == "manifests") config->actuate = "source";
  // Who has a server has its scheduler, too.
  if (config->authority.empty()) {
    config->authority = HasApiServer(*config) ? "scheduler" : "node";
  }
}

absl::Status CheckConfig(const Config& config) {
  if (!config.kubeconfig.empty() && config.in_cluster) {
    return Invalid(
        "apiServer: kubeconfig and inCluster exclude each other: the server is "
        "either that of '{}' or that of the cluster around",
        Shown(config.kubeconfig.string()));
  }
  if (HasApiServer(config) && config.node_name.empty()) {
    return Invalid(
        "apiServer: nodeName must be set: it says which pods are this node's");
  }
  if (HasApiServer(config) && config.authority == "node") {
    return Invalid(
        "authority: node does not go with apiServer: the control plane "
        "allocates the claims of its pods, and what this node allocated would "
        "not be written to the server; an operator can hand over while it is "
        "away: devmgrctl authority set node");
  }
  if (absl::Status status = CheckRuntimeFromShims(config); !status.ok()) {
    return status;
  }
  if (config.node_agent && !HasApiServer(config)) {
    return Invalid(
        "apiServer: nodeAgent is of no use without kubeconfig or inCluster: "
        "there is no server to write to");
  }
  for (const absl::Status& status :
       {CheckOneOf("actuate", config.actuate, {"source", "embedder"}),
        CheckOneOf("authority",
                   config.authority.empty() ? "node" : config.authority,
                   {"node", "scheduler", "split"}),
        CheckOneOf("metricsNames", config.metrics_names,
                   {"current", "1.36", "both"}),
        CheckOneOf("profile", config.profile, {"default", "strict-kubelet"}),
        CheckOneOf("recovery", config.recovery, {"strict", "lenient"}),
        CheckOneOf("logLevel", config.log_level,
                   {"debug", "info", "warning", "error"}),
        CheckTopology(config.topology)}) {
    if (!status.ok()) return status;
  }
  if (const absl::Status gates =
          devmgr::CheckFeatureGates(config.feature_gates);
      !gates.ok()) {
    return Invalid("featureGates: {}",
                   Shown(std::string(gates.message()), 2'000));
  }
  if (const auto users = FindUsers(config.control_users); !users.ok()) {
    return Invalid("controlUsers: {}",
                   Shown(std::string(users.status().message()), 500));
  }
  if (absl::Status status = CheckDriverEndpoint(config); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckSplit(config); !status.ok()) return status;
  if (const std::filesystem::path& mirror = config.mirror_kubelet_checkpoint;
      !mirror.empty() && (!mirror.is_absolute() || !mirror.has_filename())) {
    return Invalid(
        "mirrorKubeletCheckpoint: '{}' is not the absolute path of "
        "a file",
        Shown(mirror.string()));
  }
  if (config.metrics_address.empty()) return absl::OkStatus();
  const auto address = ParseListenAddress(config.metrics_address);
  if (address.ok()) return absl::OkStatus();
  return Invalid("metricsAddress: {}", std::string(address.status().message()));
}

std::string PrintConfig(const Config& config) {
  YAML::Emitter out;
  const auto text = [&](const char* key, const std::string& value) {
    out << YAML::Key << key << YAML::Value << value;
  };
  out << YAML::BeginMap;
  text("stateDir", config.state_dir.string());
  text("devicePluginDir", config.device_plugin_dir.string());
  text("pluginRegistryDir", config.plugin_registry_dir.string());
  text("manifestsDir", config.manifests_dir.string());
  out << YAML::Key << "apiServer" << YAML::Value << YAML::BeginMap;
  text("kubeconfig", config.kubeconfig.string());
  out << YAML::Key << "inCluster" << YAML::Value << config.in_cluster;
  out << YAML::Key << "manifests" << YAML::Value << config.with_manifests;
  out << YAML::Key << "nodeAgent" << YAML::Value << config.node_agent;
  out << YAML::Key << "qps" << YAML::Value << config.qps;
  out << YAML::Key << "burst" << YAML::Value << config.burst;
  out << YAML::EndMap;
  out << YAML::Key << "cdiSpecDirs" << YAML::Value << YAML::BeginSeq;
  for (const auto& directory : config.cdi_spec_dirs) {
    out << directory.string();
  }
  out << YAML::EndSeq;
  PrintDriverEndpoint(config.driver_endpoint, out);
  PrintPodResources(config.pod_resources, out);
  text("mirrorKubeletCheckpoint", config.mirror_kubelet_checkpoint.string());
  text("endpoint", config.endpoint.string());
  text("runtimeEndpoint", config.runtime_endpoint.string());
  PrintRuntimeFromShims(config, out);
  out << YAML::Key << "controlUsers" << YAML::Value << config.control_users;
  text("nodeName", config.node_name);
  text("actuate", config.actuate);
  text("authority", config.authority);
  PrintSplit(config, out);
  out << YAML::Key << "featureGates" << YAML::Value << config.feature_gates;
  text("profile", config.profile);
  text("recovery", config.recovery);
  text("logLevel", config.log_level);
  text("metricsAddress", config.metrics_address);
  text("metricsNames", config.metrics_names);
  for (const auto& [key, member] : DurationKeys()) {
    text(key.c_str(), devmgr::FormatDuration(config.*member));
  }
  out << YAML::Key << "draApis" << YAML::Value << config.dra_apis;
  out << YAML::Key << "healthPolicy" << YAML::Value << config.health_policy;
  WriteHardware(config.hardware, out);
  out << YAML::Key << "unknownIsUnhealthy" << YAML::Value
      << config.unknown_is_unhealthy;
  WriteDebtPolicy(config, out);
  PrintTopology(config.topology, out);
  for (const auto& [key, member] : BoolKeys()) {
    out << YAML::Key << key << YAML::Value << config.*member;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace devmgrd
