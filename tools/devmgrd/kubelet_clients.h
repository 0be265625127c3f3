// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/host.h>
#include <devmgr/kubelet_mirror.h>
#include <devmgr/pod_resources_server.h>

#include <memory>

#include "devmgrd/config.h"
#include "devmgrd/metrics.h"

namespace devmgrd {

/// What programs that look for a kubelet find.
struct KubeletClients {
  /// Null: it is not to be served. Its counters are among the metrics until
  /// these are detached.
  std::unique_ptr<devmgr::PodResourcesServer> pod_resources;
  /// The kubelet's checkpoint file of devices; null: it is not to be written.
  std::unique_ptr<devmgr::KubeletMirror> mirror;
};

/// `manager` has to outlive what is returned.
absl::StatusOr<KubeletClients> ServeKubeletClients(
    const Config& config, devmgr::DeviceManager& manager, Metrics& metrics,
    const devmgr::LogSink& log);

}  // namespace devmgrd
