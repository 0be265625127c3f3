// SPDX-License-Identifier: Apache-2.0
//
// A command line on its way to Options: what options.cc, option_checks.cc and
// container_options.cc share.
#pragma once

#include <absl/status/status.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "options.h"
#include "text.h"

namespace devmgr::ctl {

inline constexpr char kDefaultEndpoint[] = "/run/devmgr/devmgr.sock";
inline constexpr char kListedKinds[] =
    "plugins, resources, claims, debts, pods, devices, classes, holders, "
    "sources, slices, numa, changes";
inline constexpr char kDescribedKinds[] =
    "pod, claim, plugin, resource, device, slice";
inline constexpr char kTimeForm[] =
    "a time such as 2026-11-21T10:00:00Z, or a duration ago such as 10m";

/// The command line as text, before any of it is checked.
struct Raw {
  std::string endpoint;
  std::string state_dir;
  std::string format = "table";
  std::string color = "auto";
  std::string timeout;
  std::string ns;
  bool all_namespaces = false;
  bool no_headers = false;
  std::string kind;
  std::string name;
  std::string container;
  bool show_env = false;
  std::string condition;
  bool follow = false;
  std::string after;
  std::string since;
  std::string at;
  std::string from;
  std::string to;
  bool repair = false;
  bool force = false;
  std::string reason;
  std::string device;
  std::string owner;
  std::string authority;
  std::uint64_t to_format = 0;
  bool yes = false;
  std::string directory;
  bool dry_run = false;
  bool accept_losses = false;
  std::vector<std::string> cdi_spec_dirs = {"/etc/cdi", "/var/run/cdi"};
  bool cdi_edits = false;
  bool fallback = false;
  std::string inexpressible = "refuse";
  std::vector<std::string> allowed_hooks;
  bool mount_options = false;
  std::string diff_container;
  std::string runtime_endpoint;
  std::string pod_resources_socket =
      "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string cdi_device;
  std::vector<std::string> paths;
  std::string spec;
  std::string out_file;
  std::string expression;
  std::vector<std::string> slices;
  std::string driver;
  std::vector<std::string> files;
  std::string node;
  std::vector<std::string> node_labels;
  std::vector<std::string> feature_gates;
  bool old_variables = false;
  std::string like;
  std::vector<std::string> minus;
  std::vector<std::string> plugin_devices;
  bool independent = false;
  bool count_fits = false;
};

/// A check of a flag: an empty text is a variable of a script that is not set.
inline std::string NotEmpty(const std::string& text) {
  return text.empty() ? "is empty" : "";
}

using VerbMap = std::map<const CLI::App*, Verb>;

inline CLI::App* AddVerb(CLI::App& app, VerbMap& verbs, Verb verb,
                         const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  verbs[command] = verb;
  return command;
}

template <typename T>
using Names = std::vector<std::pair<std::string, T>>;

template <typename T>
absl::Status Choose(const Names<T>& names, const std::string& what,
                    const std::string& text, const std::string& allowed,
                    T* value) {
  for (const auto& [name, candidate] : names) {
    if (name != text) continue;
    *value = candidate;
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      fmt::format("{} '{}' is not known; use one of: {}", what, text, allowed));
}

template <typename T>
std::string NamesOf(const Names<T>& names) {
  std::vector<std::string> all;
  for (const auto& [name, value] : names) all.push_back(name);
  return Join(all, ", ");
}

// The values that flags may have.
const Names<Format>& FormatNames();
const Names<ColorMode>& ColorNames();
const Names<PodCondition>& ConditionNames();

/// All but `verb` and `cdi_verb`, which are set.
///   InvalidArgument  the message is for the user
absl::Status CheckOptions(Raw raw, const Environment& environment,
                          Options* options);

/// `unix:///run/x.sock` is a path, too.
std::string WithoutScheme(const std::string& endpoint);

// What a simulation is asked (simulate_options.cc).
void AddSimulate(CLI::App& app, Raw& raw, VerbMap& verbs);
absl::Status CheckSimulateOptions(const Raw& raw, Options* options);

/// `[NAMESPACE/]NAME`; without a namespace that of `ns`, or `default`.
absl::Status ParseName(const std::string& text, const std::string& ns,
                       ObjectName* name);
// What a pod-resources endpoint is asked (pod_resources.cc).
void AddPodResources(CLI::App& app, Raw& raw, VerbMap& verbs);
/// `verb` was given; the verb behind `podresources`.
PodResourcesVerb PodResourcesVerbOf(const CLI::App& verb);

// From the kubelet's device side, and back to it; its files (kubelet.cc).
void AddKubelet(CLI::App& app, Raw& raw, VerbMap& verbs);

// What is asked about containers (container_options.cc).
void AddResolve(CLI::App& app, Raw& raw, VerbMap& verbs);
void AddInject(CLI::App& app, Raw& raw, VerbMap& verbs);
void AddCdi(CLI::App& app, Raw& raw, VerbMap& verbs);
void AddShowEnv(CLI::App* command, Raw& raw);
CLI::Option* AddRuntimeEndpoint(CLI::App* command, Raw& raw,
                                const std::string& description);
/// `verb` was given; the verb behind `cdi`.
CdiVerb CdiVerbOf(const CLI::App& verb);
absl::Status CheckContainerOptions(const Raw& raw,
                                   const Environment& environment,
                                   Options* options);

}  // namespace devmgr::ctl
