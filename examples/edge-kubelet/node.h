// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cdi_cache.h>
#include <devmgr/device_manager.h>
#include <devmgr/inspection.h>
#include <devmgr/runtime_source.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cri_client.h"
#include "ended_pods.h"
#include "pod_worker.h"

namespace edge {

struct NodeOptions {
  std::filesystem::path root;     ///< As for devmgrd --root; absolute.
  std::filesystem::path runtime;  ///< Socket of the container runtime.
  std::string node_name;
  std::vector<std::filesystem::path> cdi_spec_dirs;
  /// The runtime takes the names of CDI devices; else it gets their edits.
  bool cdi_names = false;
  BackOff back_off;
};

/// The device manager of a node and its pods: a worker for each pod that the
/// manager or the runtime knows.
class Node final : public devmgr::DeviceManagerObserver {
 public:
  /// Waits for the runtime as long as it takes.
  explicit Node(NodeOptions options);
  /// Opens all of it. Afterwards it runs until the process ends, which may be
  /// at any time: another one goes on where it was.
  absl::Status Open();

  void OnPod(const devmgr::PodInfo&, bool) override { Wake(); }
  void OnObjects() override { Wake(); }
  void OnEvent(const devmgr::EventInfo& event) override;

 private:
  absl::Status OpenManager();
  void Wake();
  void Run();
  /// False: the runtime did not say what it has.
  bool FindPods();
  void Work(const devmgr::PodUid& uid, const devmgr::ObjectName& name);

  const NodeOptions options_;
  CriClient cri_;
  std::unique_ptr<devmgr::RuntimeSource> runtime_;
  std::unique_ptr<EndedPods> ended_;
  std::unique_ptr<devmgr::CdiCache> cdi_;
  std::unique_ptr<devmgr::DeviceManager> manager_;
  std::unique_ptr<devmgr::InspectionServer> server_;
  Services services_;
  std::map<devmgr::PodUid, std::unique_ptr<PodWorker>> workers_;

  std::mutex mutex_;  ///< For those below.
  std::condition_variable wake_;
  bool woken_ = true;
  std::vector<devmgr::PodAction> to_fail_;
  std::thread thread_;
};

}  // namespace edge
