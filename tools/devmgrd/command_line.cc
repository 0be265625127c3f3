// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/command_line.h"

#include <devmgr/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace devmgrd {
namespace {

/// What the command line says; it wins over the configuration file.
struct Flags {
  std::string root;
  std::string config_file;
  std::string boot_id;
  std::string import_kubelet;
  bool print_config = false;
  std::map<std::string, std::optional<std::string>> texts;
  std::vector<std::string> cdi_spec_dirs;
  std::string feature_gates;
  std::optional<std::string> kubeconfig;
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version",
                       "devmgrd " + std::string(devmgr::Version()));
  app.add_option(
      "--root", flags.root,
      "Directory for everything: state, device-plugins, plugins_registry, "
      "plugins, manifests, cdi, kubeconfig, pod-resources and devmgr.sock are "
      "below it. "
      "Without --kubeconfig the node has the name of the host, unless another "
      "one is given");
  app.add_option("--config", flags.config_file, "Configuration file (YAML)");
  app.add_flag("--print-config", flags.print_config,
               "Print the configuration that results, and exit");
  const std::pair<const char*, const char*> keys[] = {
      {"stateDir", "--state-dir"},
      {"devicePluginDir", "--device-plugin-dir"},
      {"pluginRegistryDir", "--plugin-registry-dir"},
      {"manifestsDir", "--manifests-dir"},
      {"endpoint", "--endpoint"},
      {"nodeName", "--node-name"},
      {"actuate", "--actuate"},
      {"authority", "--authority"},
      {"profile", "--profile"},
      {"recovery", "--recovery"},
      {"logLevel", "--log-level"},
      {"metricsAddress", "--metrics-address"},
      {"mirrorKubeletCheckpoint", "--mirror-kubelet-checkpoint"},
  };
  for (const auto& [key, flag] : keys) {
    app.add_option(flag, flags.texts[key],
                   std::string("As ") + key + " in the configuration file");
  }
  app.add_option("--runtime-endpoint", flags.texts["runtimeEndpoint"],
                 "As runtimeEndpoint in the configuration file: socket of the "
                 "container runtime; a pod that is gone is released when the "
                 "runtime runs nothing of it any more");
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "As apiServer.kubeconfig in the configuration file: pods and "
                 "claims come from this API server, and from manifests only "
                 "with apiServer.manifests");
  app.add_option("--cdi-spec-dir", flags.cdi_spec_dirs,
                 "As cdiSpecDirs in the configuration file; may be repeated, "
                 "the last one has the highest priority (default: /etc/cdi, "
                 "/var/run/cdi and, with --root, cdi below it)");
  app.add_option("--feature-gates", flags.feature_gates,
                 "Feature gates, such as GATE=true,GATE2=false");
  app.add_option("--import-kubelet", flags.import_kubelet,
                 "Root directory of a stopped kubelet, such as "
                 "/var/lib/kubelet: before the first start, take over the "
                 "devices and claims that its pods hold. Done once, into a "
                 "ledger that holds nothing; later starts leave it as it is");
  app.add_option("--boot-id", flags.boot_id,
                 "ID of this boot instead of the kernel's; for tests");
}

/// As the kubelet names its node where it is not given a name; empty where the
/// host's name can be none of a node.
std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  if (gethostname(name, HOST_NAME_MAX) != 0) return "";
  std::string text = name;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!is_plain(c) && c != '-' && c != '.') return "";
  }
  const bool is_name = !text.empty() && is_plain(text.front()) &&
                       is_plain(text.back()) &&
                       text.find("..") == std::string::npos &&
                       text.find(".-") == std::string::npos &&
                       text.find("-.") == std::string::npos;
  return is_name ? text : "";
}

absl::Status ReadFile(const std::string& name, std::string* text) {
  std::ifstream file(name);
  if (!file) {
    const std::string message = "cannot read configuration file '" + name +
                                "': " + std::generic_category().message(errno);
    return absl::NotFoundError(absl::string_view(message));
  }
  text->assign(std::istreambuf_iterator<char>(file), {});
  return absl::OkStatus();
}

absl::Status Configure(const Flags& flags, Config* config) {
  if (!flags.root.empty()) {
    config->root = std::filesystem::absolute(flags.root).lexically_normal();
    *config = ConfigBelow(config->root);
  }
  if (!flags.config_file.empty()) {
    std::string text;
    if (absl::Status status = ReadFile(flags.config_file, &text);
        !status.ok()) {
      return status;
    }
    if (absl::Status status = ReadConfig(text, flags.config_file, config);
        !status.ok()) {
      return status;
    }
  }
  for (const auto& [key, value] : flags.texts) {
    if (value.has_value()) SetText(key, *value, config);
  }
  if (flags.kubeconfig.has_value()) config->kubeconfig = *flags.kubeconfig;
  if (!flags.cdi_spec_dirs.empty()) {
    config->cdi_spec_dirs.assign(flags.cdi_spec_dirs.begin(),
                                 flags.cdi_spec_dirs.end());
  }
  if (absl::Status status = ReadFeatureGates(flags.feature_gates, config);
      !status.ok()) {
    return status;
  }
  CompleteConfig(config);
  if (config->node_name.empty() && !config->root.empty() &&
      !HasApiServer(*config)) {
    config->node_name = HostName();
  }
  return CheckConfig(*config);
}

}  // namespace

// The parser goes when this returns: the daemon has no use for it.
std::optional<int> ReadCommandLine(int argc, char** argv, CommandLine* line) {
  CLI::App app("Kubernetes device management on the node, as a daemon",
               "devmgrd");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (absl::Status status = Configure(flags, &line->config); !status.ok()) {
    std::fprintf(stderr, "devmgrd: %s\n",
                 std::string(status.message()).c_str());
    return 2;
  }
  line->print_config = flags.print_config;
  line->boot_id = std::move(flags.boot_id);
  line->import_kubelet = std::move(flags.import_kubelet);
  return std::nullopt;
}

}  // namespace devmgrd
