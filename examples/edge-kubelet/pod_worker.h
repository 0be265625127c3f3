// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi_cache.h>
#include <devmgr/device_manager.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cri_client.h"
#include "ended_pods.h"
#include "pod_spec.h"
#include "pod_steps.h"

namespace edge {

/// What all workers use. Borrowed: outlives them.
struct Services {
  std::filesystem::path root;
  CriClient* cri = nullptr;
  devmgr::DeviceManager* manager = nullptr;
  EndedPods* ended = nullptr;
  /// Null: the runtime takes the names of CDI devices.
  devmgr::CdiCache* cdi = nullptr;
  devmgr::CriTarget target;  ///< With `cdi`.
  BackOff back_off;
  std::function<void(const std::string&)> log;
};

/// Runs one pod, on a thread of its own, until nothing of it is left. It keeps
/// nothing that the runtime does not have, so that another one can go on in its
/// place after a kill.
class PodWorker {
 public:
  PodWorker(const Services& services, devmgr::PodUid uid,
            devmgr::ObjectName name);
  /// Waits for the end, which is near when `is_done`.
  ~PodWorker() { thread_.join(); }

  void Wake();
  bool is_done() const { return done_; }

 private:
  void Run();
  /// Takes one step; how long to wait for the next one, unless woken.
  milliseconds Turn();
  Goal GoalNow() const;
  absl::Status Look(SeenPod* seen);
  absl::Status LoadSpec();
  absl::Status Take(const Step& step, const SeenPod& seen);
  absl::Status RunSandbox(const Step& step);
  absl::Status StartContainer(const Step& step, const SeenPod& seen);
  absl::StatusOr<cri::ContainerConfig> ConfigOf(const Step& step);
  /// All that runs: sidecars after the others, the last one first.
  absl::Status StopAll(const SeenPod& seen);
  absl::Status RemoveAll(const SeenPod& seen);
  void Say(const std::string& text) const;

  const Services& services_;
  const devmgr::PodUid uid_;
  const devmgr::ObjectName name_;
  const PodPlaces places_;
  std::optional<PodSpec> spec_;
  std::uint32_t attempt_ = 0;  ///< Of the present sandbox.
  /// Of containers that have exited, by ID.
  std::map<std::string, cri::ContainerStatus> ends_;
  std::string last_error_;
  milliseconds retry_{0};

  std::atomic<bool> done_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace edge
