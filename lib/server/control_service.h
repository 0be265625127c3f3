// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/control.h>
#include <devmgr/control/v1/control.pb.h>
#include <devmgr/device_manager.h>
#include <devmgr/driver_endpoint.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "rpc/server.h"
#include "server/access.h"
#include "server/call_limit.h"
#include "server/pod_watch.h"

namespace devmgr::server {

/// What the control service answers. Handlers only decode and post: all else
/// happens on a thread of its own, which waits for the ledger and the disk, so
/// that one writing call is under way at a time. What the manager reports is
/// kept here, once for each pod, until that thread comes to it.
class ControlService : public DeviceManagerObserver {
 public:
  /// Calls taken and not answered yet. Beyond it a call gets ResourceExhausted.
  static constexpr int kMaxCalls = 256;
  /// After this long an unwanted pod of which there is no trace is forgotten.
  static constexpr std::chrono::milliseconds kForgetUnwanted{60'000};

  /// All borrowed. No handler may run when this is destroyed. Without
  /// `endpoint` drivers publish elsewhere.
  ControlService(DeviceManager& manager, WantedPods& wanted,
                 const Access& access, DriverEndpoint* endpoint);
  ~ControlService() override;
  ControlService(const ControlService&) = delete;
  ControlService& operator=(const ControlService&) = delete;

  /// Begins to follow the manager, which comes to know what is wanted where it
  /// does not drive the pods of its source. To be called once, before anything
  /// is served.
  void Begin();

  /// Handlers by method path; callable from any thread.
  std::map<std::string, rpc::CallerHandler> Methods();
  std::map<std::string, rpc::StreamHandler> Streams();

  // DeviceManagerObserver, on the manager's thread: only notes and posts.
  void OnPod(const PodInfo& pod, bool gone) override;
  void OnResourceHealth(const std::vector<PodUid>& pods) override;

 private:
  template <typename Request, typename Run>
  rpc::CallerHandler Handler(Run run);
  template <typename Request, typename Function>
  rpc::CallerHandler Method(Function answer);

  // On the executor.
  absl::StatusOr<devmgr::control::v1::WantPodResponse> WantPod(
      const rpc::Caller& caller, const std::string& manifest);
  absl::StatusOr<devmgr::control::v1::UnwantPodResponse> UnwantPod(
      const rpc::Caller& caller, const PodUid& uid);
  absl::StatusOr<devmgr::control::v1::DriverKubeconfigResponse>
  DriverKubeconfig(const rpc::Caller& caller, const std::string& driver);
  absl::StatusOr<devmgr::control::v1::DeleteSlicesResponse> DeleteSlices(
      const rpc::Caller& caller,
      const devmgr::control::v1::DeleteSlicesRequest& request);
  absl::Status CheckEndpoint() const;
  absl::Status Record(const rpc::Caller& caller, const WantedPod& pod,
                      bool wanted);
  absl::Status CheckName(const WantedPod& pod) const;
  void ForgetIfUnknown(const PodUid& uid);
  void TakeNotes();

  DeviceManager& manager_;
  /// Pods are wanted of the manager by name (Actuate::kWanted).
  const bool drives_;
  WantedPods& wanted_;
  const Access& access_;
  DriverEndpoint* const endpoint_;  ///< Null: there is none.
  CallLimit calls_{kMaxCalls};
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-control");
  PodWatch watch_;  ///< On the executor.

  std::unique_ptr<Observation> observation_;
  Mutex mutex_;
  bool has_list_ DEVMGR_GUARDED_BY(mutex_) = false;  ///< Notes may be taken.
  /// What the manager has reported: the last state of a pod, and that it is
  /// gone.
  std::map<PodUid, std::pair<PodInfo, bool>> notes_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::server
