// SPDX-License-Identifier: Apache-2.0
//
// edge-kubelet: runs the pods of a directory of manifests with a container
// runtime, and gives them their devices (README.md).
#include <devmgr/duration.h>
#include <devmgr/version.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cri_client.h"
#include "node.h"

namespace {

struct Flags {
  std::string root;
  std::string runtime = "/run/containerd/containerd.sock";
  std::string node_name;
  std::vector<std::string> cdi_spec_dirs;
  std::string cdi = "edits";
  std::string back_off = "10s";
  std::string back_off_max = "5m";
};

void Declare(CLI::App* app, Flags* flags) {
  app->add_option("--root", flags->root,
                  "Keep all state below DIR, and run the pods of DIR/manifests")
      ->required()
      ->type_name("DIR");
  app->add_option("--runtime-endpoint", flags->runtime,
                  "Socket of the container runtime")
      ->type_name("SOCKET")
      ->capture_default_str();
  app->add_option("--node-name", flags->node_name,
                  "Name of this node; pods of other nodes are ignored")
      ->type_name("NAME");
  app->add_option("--cdi", flags->cdi,
                  "How the runtime gets CDI devices: by `names`, if it "
                  "supports CDI, or by the `edits` of their spec files")
      ->check(CLI::IsMember(std::vector<std::string>{"names", "edits"}))
      ->capture_default_str();
  app->add_option("--cdi-spec-dir", flags->cdi_spec_dirs,
                  "Directory of CDI specs; may be repeated, the last one has "
                  "the highest priority (default: /etc/cdi, /var/run/cdi and "
                  "DIR/cdi)")
      ->type_name("DIR");
  app->add_option("--back-off", flags->back_off,
                  "Delay before the second restart of a container; doubles "
                  "with each further one")
      ->capture_default_str();
  app->add_option("--back-off-max", flags->back_off_max,
                  "Longest delay before a restart; a container that ran for "
                  "twice as long begins anew")
      ->capture_default_str();
}

/// Prints what the runtime has of the pods of this root.
int PrintStatus(const edge::NodeOptions& options) {
  edge::CriClient client(options.runtime);
  const auto sandboxes =
      client.Sandboxes(edge::kRootLabel, options.root.string());
  if (!sandboxes.ok()) {
    std::fprintf(stderr, "edge-kubelet: %s\n",
                 sandboxes.status().ToString().c_str());
    return 1;
  }
  static constexpr const char* kStates[] = {"created", "running", "exited",
                                            "unknown"};
  std::printf("POD\tCONTAINER\tATTEMPT\tSTATE\tEXIT\tREASON\n");
  for (const auto& sandbox : *sandboxes) {
    const auto containers = client.ContainersOf(sandbox.metadata().uid());
    if (!containers.ok()) continue;  // It went just now.
    for (const auto& one : *containers) {
      const auto status = client.StatusOf(one.id());
      if (!status.ok() || one.pod_sandbox_id() != sandbox.id()) continue;
      const bool exited = status->state() == edge::cri::CONTAINER_EXITED;
      std::printf("%s/%s\t%s\t%u\t%s\t%s\t%s\n",
                  sandbox.metadata().namespace_().c_str(),
                  sandbox.metadata().name().c_str(),
                  one.metadata().name().c_str(), one.metadata().attempt(),
                  kStates[status->state() & 3],
                  exited ? std::to_string(status->exit_code()).c_str() : "-",
                  exited ? status->reason().c_str() : "-");
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Before any thread starts, so that all of them leave the signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  CLI::App app(
      "Runs the pods of a directory of manifests with a container "
      "runtime, and gives\nthem their devices. An example of the "
      "library, and no kubelet.",
      "edge-kubelet");
  Flags flags;
  app.set_version_flag("--version",
                       "edge-kubelet " + std::string(devmgr::Version()));
  Declare(&app, &flags);
  const auto* status = app.add_subcommand(
      "status",
      "Print the containers of the pods, their exit codes and reasons");
  CLI11_PARSE(app, argc, argv);
  edge::NodeOptions options;
  options.root = std::filesystem::absolute(flags.root).lexically_normal();
  options.runtime = flags.runtime;
  options.node_name = flags.node_name;
  options.cdi_names = flags.cdi == "names";
  options.cdi_spec_dirs = {flags.cdi_spec_dirs.begin(),
                           flags.cdi_spec_dirs.end()};
  if (options.cdi_spec_dirs.empty()) {
    options.cdi_spec_dirs = {"/etc/cdi", "/var/run/cdi", options.root / "cdi"};
  }
  const auto first = devmgr::ParseDuration(flags.back_off);
  const auto last = devmgr::ParseDuration(flags.back_off_max);
  if (!first || !last || first->count() == 0 || *last < *first) {
    std::fprintf(stderr,
                 "edge-kubelet: --back-off '%s' and --back-off-max '%s' are to "
                 "be durations such as 10s, the latter no shorter\n",
                 flags.back_off.c_str(), flags.back_off_max.c_str());
    return 2;
  }
  options.back_off = {*first, *last};
  if (status->parsed()) return PrintStatus(options);

  edge::Node node(options);
  if (const absl::Status opened = node.Open(); !opened.ok()) {
    std::fprintf(stderr, "edge-kubelet: %s\n",
                 std::string(opened.message()).c_str());
    std::_Exit(1);
  }
  int signal = 0;
  sigwait(&signals, &signal);
  // Containers run on. A kill at any moment has to be fine, so there is nothing
  // to be done before the end, and calls under way are not waited for.
  std::_Exit(0);
}
