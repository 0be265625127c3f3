// SPDX-License-Identifier: Apache-2.0
//
// What the pods of a node share.
#pragma once

#include <absl/status/status.h>
#include <devmgr/cri_connection.h>
#include <devmgr/device_manager.h>
#include <devmgr/driver_endpoint.h>
#include <devmgr/pod_phases.h>
#include <devmgr/pod_steps.h>
#include <devmgr/runtime_source.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace edge {

using std::chrono::milliseconds;

struct PodId {
  devmgr::ObjectName name;
  devmgr::PodUid uid;
};

/// In the order in which they need each other.
struct Node {
  const std::filesystem::path root;
  devmgr::RestartBackOff back_off;
  /// To the shim, which gives containers their devices.
  std::unique_ptr<devmgr::CriConnection> cri;
  std::unique_ptr<devmgr::ShimRuntimeSource> runtime =
      devmgr::ShimRuntimeSource::Make();
  std::unique_ptr<devmgr::ObjectSource> manifests;
  /// These, in which pods that are over have a phase: so they are released.
  std::unique_ptr<devmgr::PodPhaseSource> pods;
  /// And what drivers publish.
  std::unique_ptr<devmgr::DriverEndpoint> endpoint;
  std::unique_ptr<devmgr::DeviceManager> manager;

  /// What is to be known of a pod after a restart: its manifest as it was when
  /// the pod began, its phase when it is over; and its volumes.
  std::filesystem::path FolderOf(const PodId& pod) const {
    return root / "pods" /
           (pod.name.ns + "_" + pod.name.name + "_" + pod.uid.value);
  }
  /// Records that a pod is over.
  absl::Status End(const PodId& pod, const std::string& phase);
};

/// Between two looks at a pod, and at which pods there are.
constexpr milliseconds kPeriod{500};

std::string ReadFile(const std::filesystem::path& file);
void Log(const std::string& text);

/// Runs a pod until nothing of it is left. Goes by what the runtime has and by
/// files, so that another process goes on after a kill.
void RunPod(Node* node, const PodId& pod);

}  // namespace edge
