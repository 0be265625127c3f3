// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/kubelet_clients.h"

#include <string>
#include <utility>

namespace devmgrd {
namespace {

/// What the option of this name came to.
absl::Status Of(const char* option, const absl::Status& status) {
  const std::string message =
      std::string(option) + ": " + std::string(status.message());
  return absl::Status(status.code(), absl::string_view(message));
}

}  // namespace

absl::StatusOr<KubeletClients> ServeKubeletClients(
    const Config& config, devmgr::DeviceManager& manager, Metrics& metrics,
    const devmgr::LogSink& log) {
  KubeletClients clients;
  if (!config.mirror_kubelet_checkpoint.empty()) {
    devmgr::KubeletMirrorOptions options;
    options.file = config.mirror_kubelet_checkpoint;
    options.log = log;
    auto mirror = devmgr::KubeletMirror::Start(manager, options);
    if (!mirror.ok()) return Of("mirrorKubeletCheckpoint", mirror.status());
    clients.mirror = *std::move(mirror);
  }
  if (config.pod_resources.off) return clients;
  devmgr::PodResourcesOptions options;
  options.socket = config.pod_resources.socket;
  options.strict_kubelet = config.profile == "strict-kubelet";
  options.log = log;
  auto server = devmgr::PodResourcesServer::Start(manager, options);
  if (!server.ok()) return Of("podResources", server.status());
  metrics.AttachPodResources(
      [server = server->get()] { return server->Counters(); });
  clients.pod_resources = *std::move(server);
  return clients;
}

}  // namespace devmgrd
