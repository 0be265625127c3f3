// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi_cache.h>
#include <devmgr/cri_shim.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "cri/messages.h"
#include "rpc/connection.h"
#include "shim/device_source.h"
#include "shim/pod_book.h"
#include "shim/pod_gate.h"
#include "shim/runtime_cdi.h"
#include "shim/runtime_client.h"

namespace devmgr::shim {

/// Decides about the calls of one proxy. All happens on its executor; what
/// comes from other threads is posted.
class Shim final : public CriShim, private CriInterceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Shim>> Start(CriShimOptions options);
  ~Shim() override;

  CriShimInfo Info() const override;
  CriProxyStats Stats() const override { return proxy_->Stats(); }

 private:
  /// A call that waits for us.
  struct Held {
    CriCall call;
    Decide decide;
  };
  using HeldCall = std::shared_ptr<const Held>;

  /// Containers that are to be created by one call.
  struct Creation {
    HeldCall held;
    bool restore = false;  ///< RestorePod; else CreateContainer.
    std::string sandbox_id;
    cri::SandboxIdentity identity;
    std::vector<cri::ContainerConfig> configs;
    /// Until when an unknown pod is waited for.
    std::chrono::steady_clock::time_point patience;
    bool given_back_again = false;
  };
  using CreationPtr = std::shared_ptr<Creation>;

  Shim(CriShimOptions options, std::unique_ptr<rpc::Runtime> runtime,
       std::unique_ptr<CdiCache> specs);

  // CriInterceptor, on the proxy's thread.
  void OnCall(CriCall call, Decide decide) override;
  void OnEnd(std::uint64_t call, const CriOutcome& outcome) override;
  void OnPassedUnread(const std::string& method,
                      const std::string& why) override;
  void OnBackendConnected() override;

  // On the executor.
  void Dispatch(const HeldCall& held);
  /// What to do with the answer of a call, if it has not ended by now.
  void WhenAnswered(std::uint64_t call,
                    std::function<void(const std::string& answer)> run);
  void Observe(const HeldCall& held);
  void Create(const HeldCall& held);
  void Restore(const HeldCall& held);
  void StartContainer(const HeldCall& held);
  void RunSandbox(const HeldCall& held);

  /// Asks the runtime what it is and what it runs; calls that come meanwhile
  /// share the answer.
  void Look(std::function<void(const absl::Status&)> then);
  void OnLook(const absl::StatusOr<RuntimeView>& view);
  void WhenRuntimeKnown(const HeldCall& held, std::function<void()> then);

  void Identify(const CreationPtr& creation);
  void FindDevices(const CreationPtr& creation);
  void OnDevices(const CreationPtr& creation,
                 const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod);
  void OnUnknownPod(const CreationPtr& creation, const absl::Status& why);
  void TakeBackFirst(const CreationPtr& creation, const std::string& container);
  void Inject(const CreationPtr& creation, const PodDevices* pod);
  void Learn(const CreationPtr& creation, const std::string& answer);

  void Forward(const HeldCall& held);
  void Fail(const HeldCall& held, const absl::Status& status);
  void Unreadable(const HeldCall& held, const absl::Status& why);
  void Tell(bool warning, std::string_view reason,
            const cri::SandboxIdentity& identity, const std::string& message);
  void CountBook();
  template <typename Change>
  void Count(Change change);
  /// `done` with whatever it gets, on the executor.
  template <typename Answer>
  std::function<void(Answer)> OnExecutor(std::function<void(Answer)> done);

  const CriShimOptions options_;
  const CdiHost host_ = SystemCdiHost();
  std::string searched_;  ///< CDI directories, for messages.
  const std::shared_ptr<Executor> executor_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<CdiCache> specs_;

  mutable Mutex mutex_;
  CriShimInfo info_ DEVMGR_GUARDED_BY(mutex_);

  // On the executor.
  RuntimeClient client_;
  std::unique_ptr<DeviceSource> source_;  ///< Null: there is none.
  std::unique_ptr<PodGate> gate_;         ///< Null: pods are not ours to want.
  PodBook book_;
  bool runtime_known_ = false;
  bool looking_ = false;
  std::vector<std::function<void(const absl::Status&)>> waiting_for_look_;
  RuntimeSupport support_;
  std::string runtime_name_;
  /// Calls that have not ended, with what is to be done with their answers.
  std::map<std::uint64_t, std::function<void(const std::string&)>> calls_;
  std::uint64_t last_event_ = 0;

  std::unique_ptr<CriProxy> proxy_;
};

}  // namespace devmgr::shim
