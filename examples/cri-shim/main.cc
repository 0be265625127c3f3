// SPDX-License-Identifier: Apache-2.0
//
// devmgr-cri-shim: stands between a CRI client and a container runtime, and
// gives each container its devices (docs/cri-shim.md). All it does lives in
// devmgr/cri_shim.h.
#include <devmgr/cri_shim.h>
#include <devmgr/device_manager.h>
#include <devmgr/inspection.h>
#include <devmgr/runtime_source.h>
#include <devmgr/version.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

using devmgr::CriPolicy;
using devmgr::RuntimeCdi;
using devmgr::UnknownSandbox;

const std::map<std::string, RuntimeCdi> kRuntimeCdi = {
    {"none", RuntimeCdi::kNone},
    {"annotations", RuntimeCdi::kAnnotations},
    {"field", RuntimeCdi::kField},
    {"both", RuntimeCdi::kFieldAndAnnotations},
};
const std::map<std::string, UnknownSandbox> kUnknownSandbox = {
    {"wait", UnknownSandbox::kWait},
    {"pass", UnknownSandbox::kPass},
    {"refuse", UnknownSandbox::kRefuse},
};
const std::map<std::string, CriPolicy> kPolicies = {
    {"refuse", CriPolicy::kRefuse},
    {"warn", CriPolicy::kWarn},
};
const std::vector<std::string> kActuate = {"none", "cri", "manifests"};

struct Flags {
  std::string listen;
  std::string runtime;
  std::string mode;
  std::string devmgrd;
  std::string root;
  std::string actuate = "none";
  std::string node_name;
  std::vector<std::string> cdi_spec_dirs;
  std::string runtime_cdi;
  std::string unknown_sandbox = "wait";
  int unknown_sandbox_wait_ms = 2'000;
  int call_timeout_ms = 30'000;
  std::string inexpressible = "refuse";
  std::vector<std::string> allowed_hooks;
  bool mount_options = false;
  bool strict = false;
  std::string name;
  bool sandbox_devices = false;
};

void Print(std::string_view text) {
  std::fprintf(stderr, "devmgr-cri-shim: %.*s\n", static_cast<int>(text.size()),
               text.data());
}

void Log(devmgr::LogLevel level, std::string_view text) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  if (level == devmgr::LogLevel::kDebug) return;
  std::fprintf(stderr, "devmgr-cri-shim: %s: %.*s\n",
               kNames[static_cast<int>(level)], static_cast<int>(text.size()),
               text.data());
}

void DeclareDevices(CLI::App* app, Flags* flags) {
  auto* daemon =
      app->add_option(
             "--devmgrd", flags->devmgrd,
             "Get devices from the devmgrd with this inspection socket")
          ->type_name("SOCKET");
  auto* root = app->add_option("--root", flags->root,
                               "Manage devices in this process, below DIR as "
                               "`devmgrd --root DIR`")
                   ->type_name("DIR");
  daemon->excludes(root);
  app->add_option("--actuate", flags->actuate,
                  "With --root, when pods are prepared: `cri`: when the client "
                  "runs their sandboxes; `manifests`: when they are in "
                  "DIR/manifests; `none`: not by this program, but for example "
                  "by the daemon of --devmgrd")
      ->check(CLI::IsMember(kActuate))
      ->capture_default_str();
  app->add_option(
         "--node-name", flags->node_name,
         "With --root: name of this node; pods of other nodes are ignored")
      ->type_name("NAME");
  app->add_option("--name", flags->name,
                  "Name of this shim for a devmgrd with `runtimeFromShims: "
                  "[NAME, ...]`, which goes by what the named shims report of "
                  "their runtimes")
      ->type_name("NAME");
  app->add_flag("--sandbox-devices", flags->sandbox_devices,
                "Add the CDI device names of all containers of a pod to its "
                "sandbox, as an annotation, for runtimes whose sandboxes are "
                "virtual machines");
  app->add_option("--unknown-sandbox", flags->unknown_sandbox,
                  "What to do with containers whose pod is not known")
      ->check(CLI::IsMember(kUnknownSandbox))
      ->capture_default_str();
  app->add_option(
         "--unknown-sandbox-wait-ms", flags->unknown_sandbox_wait_ms,
         "How long `wait` waits for the pod before it passes the container")
      ->check(CLI::Range(0, 600'000))
      ->capture_default_str();
  app->add_option(
         "--call-timeout-ms", flags->call_timeout_ms,
         "Timeout of calls to plugins before a start, and of calls to devmgrd")
      ->check(CLI::Range(1, 600'000))
      ->capture_default_str();
}

void DeclareRuntime(CLI::App* app, Flags* flags) {
  app->add_option("--listen", flags->listen,
                  "Socket to create, to which CRI clients connect")
      ->required()
      ->type_name("SOCKET");
  app->add_option("--runtime", flags->runtime, "Socket of the runtime")
      ->required()
      ->type_name("SOCKET");
  app->add_option("--mode", flags->mode,
                  "Mode of the --listen socket, octal (default: that of the "
                  "runtime's socket)")
      ->type_name("0660");
  app->add_option("--runtime-cdi", flags->runtime_cdi,
                  "How the runtime accepts CDI device names (default: the "
                  "runtime is asked)")
      ->check(CLI::IsMember(kRuntimeCdi));
  app->add_option("--cdi-spec-dir", flags->cdi_spec_dirs,
                  "Directory of CDI specs; may be repeated, the last one has "
                  "the highest priority (default: /etc/cdi, /var/run/cdi and, "
                  "with --root, DIR/cdi)")
      ->type_name("DIR");
  app->add_option("--inexpressible", flags->inexpressible,
                  "With a runtime without CDI: `refuse` a container whose CDI "
                  "edits CRI has no field for, or `warn` and leave them out")
      ->check(CLI::IsMember(kPolicies))
      ->capture_default_str();
  app->add_option(
         "--allow-hook", flags->allowed_hooks,
         "Leave this hook out, whatever --inexpressible says: the last part of "
         "its path, optionally with its first arguments; may be repeated")
      ->type_name("HOOK");
  app->add_flag("--mount-options", flags->mount_options,
                "The runtime supports mount options");
  app->add_flag(
      "--strict", flags->strict,
      "Refuse requests that cannot be parsed, instead of passing them on");
}

/// Reads an octal mode. False: that is none.
bool ReadMode(const std::string& text, std::optional<mode_t>* mode) {
  if (text.empty()) return true;
  if (text.size() > 4 ||
      text.find_first_not_of("01234567") != std::string::npos) {
    return false;
  }
  *mode = static_cast<mode_t>(std::stoul(text, nullptr, 8));
  return *mode <= 0777;
}

std::vector<std::filesystem::path> SpecDirs(const Flags& flags) {
  if (!flags.cdi_spec_dirs.empty()) {
    return {flags.cdi_spec_dirs.begin(), flags.cdi_spec_dirs.end()};
  }
  std::vector<std::filesystem::path> dirs = {"/etc/cdi", "/var/run/cdi"};
  if (!flags.root.empty()) {
    dirs.push_back(std::filesystem::path(flags.root) / "cdi");
  }
  return dirs;
}

/// False: they make no sense together; the reason was printed.
bool OptionsOf(const Flags& flags, devmgr::CriShimOptions* options) {
  if (!flags.devmgrd.empty() && flags.actuate != "none") {
    Print("--actuate " + flags.actuate +
          " is not for --devmgrd: that daemon prepares and releases by "
          "itself, and does not tell whether its source still has a pod. "
          "Leave --actuate out, or let --root manage devices here");
    return false;
  }
  if (flags.root.empty() != (flags.actuate == "none")) {
    Print(
        "--root needs --actuate cri or --actuate manifests, and the other "
        "way round");
    return false;
  }
  if (!ReadMode(flags.mode, &options->proxy.mode)) {
    Print("--mode '" + flags.mode + "' is not an octal mode such as 0660");
    return false;
  }
  options->proxy.listen = flags.listen;
  options->proxy.backend = flags.runtime;
  options->devmgrd = flags.devmgrd;
  options->name = flags.name;
  options->sandbox_devices = flags.sandbox_devices;
  options->unknown_sandbox = kUnknownSandbox.at(flags.unknown_sandbox);
  options->unknown_sandbox_wait =
      std::chrono::milliseconds(flags.unknown_sandbox_wait_ms);
  options->call_timeout = std::chrono::milliseconds(flags.call_timeout_ms);
  if (!flags.runtime_cdi.empty()) {
    options->runtime_cdi = kRuntimeCdi.at(flags.runtime_cdi);
  }
  options->cdi_spec_dirs = SpecDirs(flags);
  devmgr::CriTarget& fallback = options->fallback;
  const CriPolicy policy = kPolicies.at(flags.inexpressible);
  fallback.hooks = policy;
  fallback.device_nodes = policy;
  fallback.net_devices = policy;
  fallback.mounts = policy;
  fallback.intel_rdt = policy;
  if (policy == CriPolicy::kRefuse && !flags.allowed_hooks.empty()) {
    fallback.hooks = CriPolicy::kAllowList;
    fallback.allowed_hooks = flags.allowed_hooks;
  }
  fallback.mount_options = flags.mount_options;
  options->strict = flags.strict;
  options->log = Log;
  return true;
}

/// Logs what happens to pods and plugins.
class EventLogger final : public devmgr::DeviceManagerObserver {
 public:
  void OnEvent(const devmgr::EventInfo& event) override {
    Log(event.warning ? devmgr::LogLevel::kWarning : devmgr::LogLevel::kInfo,
        event.reason + " " + event.object_kind + " " + event.object.ToString() +
            ": " + event.message);
  }
};

/// A device manager in this process, with its inspection socket.
class OwnManager {
 public:
  absl::Status Open(const Flags& flags) {
    const std::filesystem::path root = flags.root;
    devmgr::DeviceManagerOptions options;
    options.state_dir = root / "state";
    options.plugin_registry_dir = root / "plugins_registry";
    options.device_plugin_dir = root / "device-plugins";
    options.cdi_spec_dirs = SpecDirs(flags);
    options.node_name = flags.node_name;
    options.actuate = flags.actuate == "manifests" ? devmgr::Actuate::kSource
                                                   : devmgr::Actuate::kWanted;
    for (const char* folder : {"manifests", "plugins", "cdi"}) {
      std::error_code error;
      std::filesystem::create_directories(root / folder, error);
      if (!error) continue;
      const std::string message = "cannot make directory '" +
                                  (root / folder).string() +
                                  "': " + error.message();
      return absl::PermissionDeniedError(absl::string_view(message));
    }
    source_ = devmgr::WatchManifests(root / "manifests", flags.node_name);
    devmgr::Host host;
    host.objects = source_.get();
    host.runtime = runtime_.get();
    host.log = Log;
    host.observers = {&events_};
    auto manager = devmgr::DeviceManager::Open(options, host);
    if (!manager.ok()) return manager.status();
    manager_ = *std::move(manager);
    auto server =
        devmgr::InspectionServer::Start(*manager_, root / "devmgr.sock", Log);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }

  devmgr::DeviceManager* manager() const { return manager_.get(); }
  devmgr::ShimRuntimeSource* runtime() const { return runtime_.get(); }

 private:
  EventLogger events_;
  std::unique_ptr<devmgr::ObjectSource> source_;
  /// What the shim learns of the runtime.
  std::unique_ptr<devmgr::ShimRuntimeSource> runtime_ =
      devmgr::ShimRuntimeSource::Make();
  std::unique_ptr<devmgr::DeviceManager> manager_;
  std::unique_ptr<devmgr::InspectionServer> server_;
};

/// Containers that have nothing from us, since their pods are not known.
std::string DescribeUnknown(const devmgr::CriShimInfo& info) {
  constexpr std::size_t kMost = 100;
  const auto& all = info.unknown_containers;
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kMost; ++i) {
    text += i == 0 ? "; containers of pods that are not known: " : ", ";
    text += all[i].id + " ('" + all[i].name + "' of ";
    text += all[i].uid.value.empty() ? "no pod)"
                                     : "'" + all[i].pod.ToString() + "')";
  }
  if (all.size() > kMost) {
    text += ", and " + std::to_string(all.size() - kMost) + " more";
  }
  return text;
}

/// What SIGUSR1 asks for.
std::string Describe(const devmgr::CriShim& shim) {
  const devmgr::CriShimInfo info = shim.Info();
  const devmgr::CriProxyStats stats = shim.Stats();
  const std::string runtime =
      info.runtime_known
          ? info.runtime_name + " " + info.runtime_version + ", CDI names: " +
                std::string(devmgr::RuntimeCdiName(info.runtime_cdi)) + " (" +
                info.runtime_cdi_source + ": " + info.runtime_cdi_reason + ")"
          : "unknown: " + info.runtime_error;
  std::string text = "runtime " + runtime;
  const auto count = [&text](const char* name, std::uint64_t value) {
    text += "; " + std::string(name) + ": " + std::to_string(value);
  };
  count("sandboxes", info.sandboxes);
  count("of no pod", info.foreign_sandboxes);
  count("containers", info.containers);
  count("containers changed", info.injected);
  count("passed as they came", info.unchanged);
  count("calls refused", info.refused);
  count("requests that could not be parsed", info.unreadable);
  count("connections", stats.connections);
  count("calls", stats.calls);
  count("held", stats.held);
  count("calls so far", stats.total_calls);
  count("runtime lost", stats.backend_losses);
  for (const auto& [reason, times] : info.events) {
    count(("event " + reason).c_str(), times);
  }
  return text + DescribeUnknown(info);
}

/// Runs until SIGTERM or SIGINT.
absl::Status Serve(const Flags& flags, devmgr::CriShimOptions options,
                   const sigset_t& signals) {
  OwnManager own;
  if (!flags.root.empty()) {
    if (absl::Status status = own.Open(flags); !status.ok()) return status;
    options.manager = own.manager();
    options.runtime_source = own.runtime();
    options.actuate = flags.actuate != "manifests";
  }
  const auto shim = devmgr::CriShim::Start(options);
  if (!shim.ok()) return shim.status();
  Log(devmgr::LogLevel::kInfo, std::string(devmgr::Version()) + " listens at " +
                                   flags.listen + ", for " + flags.runtime);
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) {
    Log(devmgr::LogLevel::kInfo, Describe(**shim));
  }
  Log(devmgr::LogLevel::kInfo,
      "stopping on signal " + std::to_string(signal) + "; containers run on");
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  // Before any thread starts, so that all of them leave the signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app(
      "Stands between a CRI client and a container runtime, and "
      "gives\ncontainers their devices. Without --devmgrd and --root it only "
      "handles\nthe CDI device names that the client sends, as the kubelet "
      "does: for a\nruntime without CDI they become plain variables, mounts "
      "and device nodes.",
      "devmgr-cri-shim");
  Flags flags;
  app.set_version_flag("--version",
                       "devmgr-cri-shim " + std::string(devmgr::Version()));
  DeclareRuntime(&app, &flags);
  DeclareDevices(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  devmgr::CriShimOptions options;
  if (!OptionsOf(flags, &options)) return kUsage;
  const absl::Status status = Serve(flags, std::move(options), signals);
  if (status.ok()) return 0;
  Print(std::string(status.message()));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFailed;
}
