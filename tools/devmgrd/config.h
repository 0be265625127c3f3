// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/options.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace devmgrd {

/// The endpoint at which DRA drivers find the API that they know, where there
/// is no API server.
struct DriverEndpointConfig {
  /// `IP:PORT`; port 0: the one that it had last, or a free one.
  std::string listen = "127.0.0.1:0";
  /// Where each driver finds its kubeconfig.
  std::filesystem::path kubeconfig_dir = "/etc/devmgr/kubeconfig";
  /// That may connect, besides those of `devmgrctl endpoint kubeconfig`.
  std::vector<std::string> drivers;
  /// `driverEndpoint: false`: no driver may, now or later.
  bool off = false;
  friend bool operator==(const DriverEndpointConfig&,
                         const DriverEndpointConfig&) = default;
};

/// The kubelet's pod-resources API, as devmgrd serves it.
struct PodResourcesConfig {
  std::filesystem::path socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  bool off = false;  ///< `podResources: false`: it is not served.
  friend bool operator==(const PodResourcesConfig&,
                         const PodResourcesConfig&) = default;
};

/// NUMA alignment, in the words of the kubelet's configuration.
struct TopologyConfig {
  std::string policy = "none";
  std::string scope = "container";
  std::map<std::string, std::string> options;
  /// Where the machine's NUMA nodes are read.
  std::filesystem::path sysfs_dir = "/sys";
  friend bool operator==(const TopologyConfig&,
                         const TopologyConfig&) = default;
};

/// The options of devmgrd, in a file or by flags. Defaults are those of a
/// system service.
struct Config {
  std::filesystem::path root;  ///< Of `--root`; not a key of the file.
  std::filesystem::path state_dir = "/var/lib/devmgr/state";
  std::filesystem::path device_plugin_dir = "/var/lib/kubelet/device-plugins";
  std::filesystem::path plugin_registry_dir =
      "/var/lib/kubelet/plugins_registry";
  std::filesystem::path manifests_dir = "/etc/devmgr/manifests";
  /// Of an API server, from which objects come;
  /// empty: none.
  std::filesystem::path kubeconfig;
  /// The API server is that of the cluster in whose pod devmgrd runs.
  bool in_cluster = false;
  /// Objects of `manifests_dir` count as well.
  bool with_manifests = false;
  /// No kubelet runs here: devmgrd writes the status of pods, and deletes those
  /// that are over.
  bool node_agent = false;
  /// Of requests that write to it: so many in a second, and at once.
  double qps = 50;
  int burst = 100;
  std::vector<std::filesystem::path> cdi_spec_dirs = {"/etc/cdi",
                                                      "/var/run/cdi"};
  std::filesystem::path endpoint = "/run/devmgr/devmgr.sock";
  DriverEndpointConfig driver_endpoint;
  PodResourcesConfig pod_resources;
  /// The kubelet's checkpoint file of devices is kept up to date here; empty:
  /// nowhere.
  std::filesystem::path mirror_kubelet_checkpoint;
  TopologyConfig topology;
  /// Of the container runtime, which is asked what it runs; empty: it is not.
  std::filesystem::path runtime_endpoint;
  /// CRI shims report what their runtimes run; not with `runtime_endpoint`.
  bool runtime_from_shims = false;
  /// Then: those with these names; empty: all that report.
  std::vector<std::string> runtime_shims;
  /// Users that may use the control service: UIDs or names.
  std::vector<std::string> control_users;
  std::string node_name;
  std::string actuate = "source";  ///< Or `embedder`.
  /// `node`, `scheduler` or `split`; empty: `scheduler` with an API server,
  /// else `node`.
  std::string authority;
  /// With `split`, by resource: how many devices are for pods of manifests.
  std::map<std::string, std::int64_t> split_local;
  std::string profile = "default";  ///< Or `strict-kubelet`.
  std::string recovery = "strict";  ///< Or `lenient`.
  std::string log_level = "info";   ///< `debug`, `info`, `warning`, `error`.
  std::map<std::string, bool> feature_gates;
  /// By driver; `*`: of all others.
  std::map<std::string, devmgr::DebtPolicy> debt_policy;
  bool dra_compat = false;
  std::map<std::string, std::string> dra_apis;  ///< By driver.
  // Of device plugins; as in devmgr::DeviceManagerOptions.
  std::chrono::milliseconds plugin_call_timeout{30'000};
  std::chrono::milliseconds plugin_grace_period{300'000};
  std::chrono::milliseconds admission_wait{300'000};
  std::chrono::milliseconds starvation_limit{300'000};
  bool pod_identity_metadata = false;
  std::map<std::string, std::string> health_policy;  ///< By resource.
  std::chrono::milliseconds unhealthy_for{30'000};
  std::chrono::milliseconds healthy_for{10'000};
  /// Resources and drivers.
  std::vector<std::string> unknown_is_unhealthy;
  devmgr::HardwareOptions hardware;  ///< Of the map `hardware`.
  bool refuse_edit_conflicts = false;
  bool admission_audit = false;  ///< As audit_wakeups there. For tests.
  /// Where /metrics is served (ParseListenAddress); empty: nowhere.
  std::string metrics_address;
  /// Which names metrics have that upstream renamed: `current`, `1.36`, `both`.
  std::string metrics_names = "current";
  friend bool operator==(const Config&, const Config&) = default;
};

/// Everything below one directory.
Config ConfigBelow(const std::filesystem::path& root);

/// Overrides `config` with what the YAML text says.
///   InvalidArgument  names file, line and key: unknown keys, wrong types,
///                    values that are not allowed
absl::Status ReadConfig(std::string_view text, const std::string& file,
                        Config* config);

/// Sets one key of the file that holds a text; `key` is one of them.
void SetText(const std::string& key, const std::string& value, Config* config);

/// `GATE=true,GATE2=false`, as the kubelet's flag.
///   InvalidArgument  names the item
absl::Status ReadFeatureGates(std::string_view text, Config* config);

/// Objects come from an API server.
bool HasApiServer(const Config& config);
/// Objects come from manifests, alone or beside an API server.
bool ReadsManifests(const Config& config);

/// Drivers may publish here: this node allocates, and has a name.
bool ServesDrivers(const Config& config);

/// Fills in what follows from other values.
void CompleteConfig(Config* config);

/// Checks values that flags may have set.
absl::Status CheckConfig(const Config& config);

/// As a file that ReadConfig takes.
std::string PrintConfig(const Config& config);

/// The library's options. `config` is checked.
devmgr::DeviceManagerOptions OptionsOf(const Config& config);

}  // namespace devmgrd
