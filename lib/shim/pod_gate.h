// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/actuator.h>
#include <devmgr/device_manager.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "cri/messages.h"

namespace devmgr::shim {

/// `actuate: cri`: pods are wanted when their first sandbox is to run, held
/// until they are Ready, and released when they are over: when neither the
/// runtime nor a complete source has them. A pod keeps its place while nobody
/// holds a call for it. Lives on `executor`.
class PodGate {
 public:
  using Done = std::function<void(absl::Status)>;

  /// All borrowed; must be destroyed once `executor` has stopped.
  PodGate(DeviceManager& manager, Actuator& actuator,
          std::shared_ptr<Executor> executor);
  ~PodGate();

  using Time = std::chrono::steady_clock::time_point;
  struct Patience {
    Time unknown;  ///< For a pod that neither source nor ledger knows.
    Time ready;
  };

  /// Ends with OK when the pod is Ready.
  ///   NotFound            nobody knows it
  ///   Unavailable         not Ready in time; the message says what it waits
  ///                       for
  ///   FailedPrecondition  it is rejected
  void Admit(const cri::SandboxIdentity& pod, const Patience& patience,
             Done done);

  /// The last sandbox of a pod is gone, by UID.
  void OnLastSandboxGone(const PodUid& pod);
  /// The pods that have sandboxes now, after a look at the runtime.
  void OnSandboxes(std::set<PodUid> pods);

 private:
  class Watcher;
  struct Waiting {
    cri::SandboxIdentity pod;
    Patience patience;
    Done done;
    TimerId timer = 0;
  };

  void JudgeAll();
  /// True when it was answered.
  bool Judge(const Waiting& waiting);
  void Arm(std::uint64_t id, Time when);
  void ReleaseIfOver(const PodUid& pod);

  DeviceManager& manager_;
  Actuator& actuator_;
  const std::shared_ptr<Executor> executor_;
  std::unique_ptr<Watcher> watcher_;
  std::map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_ = 0;
  std::set<PodUid> without_sandbox_;  ///< May be over; the source decides.
};

}  // namespace devmgr::shim
