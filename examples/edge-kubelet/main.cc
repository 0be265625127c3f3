// SPDX-License-Identifier: Apache-2.0
//
// edge-kubelet: runs the pods of a directory of manifests with a container
// runtime, and gives them their devices (README.md).
#include <devmgr/cri_shim.h>
#include <devmgr/inspection.h>
#include <devmgr/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "node.h"

namespace edge {

namespace fs = std::filesystem;

void Log(const std::string& text) {
  std::fprintf(stderr, "edge-kubelet: %s\n", text.c_str());
}

namespace {

struct Flags {
  fs::path root;
  std::string runtime = "/run/containerd/containerd.sock";
  std::string node_name;
  std::vector<std::string> drivers;
  std::vector<fs::path> cdi_spec_dirs;
  double back_off = 10;
  double back_off_max = 300;
};

void Declare(CLI::App* app, Flags* flags) {
  app->add_option("--root", flags->root,
                  "Keep all state below DIR, and run the pods of DIR/manifests")
      ->required();
  app->add_option("--runtime-endpoint", flags->runtime,
                  "Socket of the container runtime (default: containerd's)");
  app->add_option("--node-name", flags->node_name,
                  "Name of this node; pods of other nodes are ignored "
                  "(default: the host's name)");
  app->add_option("--driver", flags->drivers,
                  "Name of a DRA driver that publishes its devices here; it "
                  "finds its kubeconfig at DIR/kubeconfig/NAME. May be "
                  "repeated");
  app->add_option("--cdi-spec-dir", flags->cdi_spec_dirs,
                  "Directory of CDI specs; may be repeated, the last one has "
                  "the highest priority (default: /etc/cdi, /var/run/cdi and "
                  "DIR/cdi)");
  app->add_option("--back-off", flags->back_off,
                  "Seconds before the second restart of a container; doubles "
                  "with each further one");
  app->add_option("--back-off-max", flags->back_off_max,
                  "Most seconds before a restart; a container that ran for "
                  "twice as long begins anew");
}

devmgr::DeviceManagerOptions OptionsOf(const Flags& flags) {
  devmgr::DeviceManagerOptions options;
  options.state_dir = flags.root / "state";
  options.plugin_registry_dir = flags.root / "plugins_registry";
  options.device_plugin_dir = flags.root / "device-plugins";
  options.cdi_spec_dirs = flags.cdi_spec_dirs;
  options.node_name = flags.node_name;
  options.actuate = devmgr::Actuate::kSource;
  return options;
}

/// Pods of which something is left from a process before this one.
std::vector<PodId> LeftPods(const fs::path& root) {
  std::vector<PodId> pods;
  for (const auto& folder : fs::directory_iterator(root / "pods")) {
    const std::string text = folder.path().filename().string();
    const auto first = text.find('_');  // No part of names.
    const auto second = text.find('_', first + 1);
    if (second == std::string::npos) continue;
    pods.push_back(
        {{text.substr(0, first), text.substr(first + 1, second - first - 1)},
         {text.substr(second + 1)}});
  }
  return pods;
}

void LogProblem(devmgr::LogLevel level, std::string_view text) {
  if (level >= devmgr::LogLevel::kWarning) Log(std::string(text));
}

/// Opens the manager, and what it has its objects from.
absl::Status Open(const Flags& flags, Node* node) {
  devmgr::DriverEndpointOptions options;
  options.node_name = flags.node_name;
  options.state_dir = node->root / "state" / "endpoint";
  options.kubeconfig_dir = node->root / "kubeconfig";
  options.drivers = flags.drivers;
  options.log = LogProblem;
  auto endpoint = devmgr::DriverEndpoint::Create(options, *node->pods);
  if (!endpoint.ok()) return endpoint.status();
  node->endpoint = *std::move(endpoint);

  devmgr::Host host;
  host.objects = &node->endpoint->source();
  host.runtime = node->runtime.get();
  host.log = LogProblem;
  host.observers = {node->endpoint.get()};
  host.act_on_pod = [node](const devmgr::PodAction& action) {
    // It is being stopped already.
    if (action.kind == devmgr::PodAction::Kind::kStop) return;
    Log("pod '" + action.name.ToString() + "' fails: " + action.reason + ": " +
        action.message);
    // Not on the manager's thread, since it writes.
    std::thread([node, action] {
      node->End({action.name, action.pod}, "Failed").IgnoreError();
    }).detach();
  };
  auto manager = devmgr::DeviceManager::Open(OptionsOf(flags), host);
  if (!manager.ok()) return manager.status();
  node->manager = *std::move(manager);
  node->endpoint->ShowObjectsOf([node] { return node->manager->Objects(); });
  absl::Status status = node->manager->WaitUntilLoaded();
  if (status.ok()) status = node->endpoint->Serve(node->manager->KeptObjects());
  return status;
}

/// Returns on errors only: the process may end at any time, and another one
/// goes on where it was.
absl::Status Serve(const Flags& flags, Node* node) {
  const fs::path& root = node->root;
  for (const char* folder : {"manifests", "plugins", "cdi", "pods"}) {
    fs::create_directories(root / folder);
  }
  node->back_off = {milliseconds(static_cast<int>(1'000 * flags.back_off)),
                    milliseconds(static_cast<int>(1'000 * flags.back_off_max))};
  auto cri = devmgr::CriConnection::Open(root / "cri.sock");
  if (!cri.ok()) return cri.status();
  node->cri = *std::move(cri);
  node->manifests = devmgr::WatchManifests(root / "manifests", flags.node_name);
  node->pods = devmgr::PodPhaseSource::Make(*node->manifests);
  const std::vector<PodId> left = LeftPods(root);
  for (const PodId& pod : left) {
    const std::string phase = ReadFile(node->FolderOf(pod) / "phase");
    if (!phase.empty()) node->pods->SetPhase(pod.name, phase);
  }
  const absl::Status opened = Open(flags, node);
  if (!opened.ok()) return opened;
  const auto server = devmgr::InspectionServer::Start(
      *node->manager, root / "devmgr.sock", LogProblem,
      {.driver_endpoint = node->endpoint.get()});
  if (!server.ok()) return server.status();

  devmgr::CriShimOptions options;
  options.proxy.listen = root / "cri.sock";
  options.proxy.backend = flags.runtime;
  options.cdi_spec_dirs = flags.cdi_spec_dirs;
  options.manager = node->manager.get();
  options.runtime_source = node->runtime.get();
  const auto shim = devmgr::CriShim::Start(options);
  if (!shim.ok()) return shim.status();

  Log("runs the pods of '" + (root / "manifests").string() + "'");
  std::map<devmgr::PodUid, std::future<void>> runs;
  const auto run = [&](const PodId& pod) {
    std::future<void>& end = runs[pod.uid];
    if (end.valid() &&
        end.wait_for(milliseconds(0)) == std::future_status::timeout) {
      return;
    }
    end = std::async(std::launch::async, RunPod, node, pod);
  };
  for (const PodId& pod : left) run(pod);
  for (;; std::this_thread::sleep_for(kPeriod)) {
    for (const devmgr::PodInfo& pod : node->manager->View()->Pods()) {
      run({pod.name, pod.uid});
    }
  }
}

}  // namespace
}  // namespace edge

int main(int argc, char** argv) {
  // Containers run on, and a kill at any moment has to be fine.
  std::signal(SIGTERM, [](int) { std::_Exit(0); });
  std::signal(SIGINT, [](int) { std::_Exit(0); });
  CLI::App app(
      "Runs the pods of a directory of manifests with a container runtime, and "
      "gives\nthem their devices. An example of the library, and no kubelet.",
      "edge-kubelet");
  edge::Flags flags;
  char host_name[HOST_NAME_MAX + 1] = "";
  gethostname(host_name, HOST_NAME_MAX);
  flags.node_name = host_name;
  app.set_version_flag("--version",
                       "edge-kubelet " + std::string(devmgr::Version()));
  edge::Declare(&app, &flags);
  CLI11_PARSE(app, argc, argv);
  flags.root = std::filesystem::absolute(flags.root).lexically_normal();
  if (flags.cdi_spec_dirs.empty()) {
    flags.cdi_spec_dirs = {"/etc/cdi", "/var/run/cdi", flags.root / "cdi"};
  }
  // Threads go on with it until the process ends: it is never destroyed.
  edge::Node node{flags.root};
  try {
    edge::Log(std::string(edge::Serve(flags, &node).message()));
  } catch (const std::filesystem::filesystem_error& error) {
    edge::Log(error.what());
  }
  std::_Exit(1);
}
