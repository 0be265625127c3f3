// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi_cache.h>
#include <devmgr/cri_shim.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/mutex.h"
#include "cri/messages.h"
#include "cri/patch.h"
#include "peer/log_fold.h"
#include "rpc/connection.h"
#include "shim/creation_step.h"
#include "shim/device_source.h"
#include "shim/held_devices.h"
#include "shim/pod_book.h"
#include "shim/runtime_cdi.h"
#include "shim/runtime_client.h"
#include "shim/runtime_feed.h"
#include "shim/runtime_looker.h"
#include "shim/runtime_reporter.h"
#include "shim/sandbox_actuator.h"
#include "shim/shim_runtime_source.h"

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
  using Time = std::chrono::steady_clock::time_point;
  /// A call that waits for us. All that is waited for on its behalf ends before
  /// its caller does.
  struct Held {
    Held(CriCall what, Decide how, Time now);

    CriCall call;
    Decide decide;
    /// By then we give an answer of our own, which says what was late.
    Time answer_by;
    /// So long what may never come is waited for; then there is time for one
    /// more question.
    Time patient_until;
  };
  using HeldCall = std::shared_ptr<const Held>;

  /// Containers that are to be created by one call, or a sandbox that is to
  /// know the devices of all containers of its pod.
  struct Creation {
    /// Asks for all that the pod has.
    bool ForSandbox() const { return kind == Kind::kRunPodSandbox; }

    enum class Kind { kCreateContainer, kRestorePod, kRunPodSandbox };
    HeldCall held;
    Kind kind = Kind::kCreateContainer;
    std::string sandbox_id;
    cri::SandboxIdentity identity;
    std::vector<cri::ContainerConfig> configs;
    std::vector<HeldDevices> devices;  ///< Of each, once it is planned.
    /// Until when an unknown pod is waited for.
    Time patience;
    std::uint64_t asked_at = 0;  ///< `source_version_` then.
    CreationState state = CreationState::kAsking;
    /// Containers for whose missing specs no driver is asked any more.
    std::set<std::string> has_asked;
    /// Init containers whose devices were asked for again, of kRunPodSandbox.
    std::set<std::string> taken_back;
  };
  using CreationPtr = std::shared_ptr<Creation>;

  Shim(CriShimOptions options, std::unique_ptr<rpc::Runtime> runtime,
       std::unique_ptr<CdiCache> specs, ShimRuntime* fed);

  // CriInterceptor, on the proxy's thread.
  void OnCall(CriCall call, Decide decide) override;
  void OnEnd(std::uint64_t call, const CriOutcome& outcome) override;
  void OnPassedUnread(const std::string& method,
                      const std::string& why) override;
  void OnBackendLost(const absl::Status& why) override;
  void OnRightsNotTaken(const absl::Status& why) override;
  void OnTurnedAway(const std::string& why) override;

  // On the executor.
  void Dispatch(const HeldCall& held);
  using Over = std::function<void(const CriOutcome&)>;
  /// What to do when a call is over, if it is not by now.
  void WhenOver(std::uint64_t call, Over run);
  void OnOver(std::uint64_t call, const CriOutcome& outcome);
  void Observe(const HeldCall& held);
  void StartContainer(const HeldCall& held);
  void RunSandbox(const HeldCall& held);
  /// Goes on when the pod is Ready, if that is ours to see to.
  void WhenAdmitted(const HeldCall& held, const cri::SandboxIdentity& identity,
                    std::function<void()> then);

  // shim_look.cc
  using Looked = std::function<void(const absl::Status&)>;
  struct Waiting {
    Looked then;
    bool for_lists;  ///< Else for what the runtime is.
  };
  /// Asks the runtime what it is and what it runs; those who come meanwhile
  /// share the answer if it is one. Repeated until it succeeds. For `held` it
  /// is waited for until that has to be answered: then Unavailable.
  void Look(const HeldCall& held, Looked then);
  void LookFor(const HeldCall& held, Waiting waiting);
  void WaitForLook(Waiting waiting);
  void BeginLook();
  void EndLook(const absl::Status& status);
  void OnIdentity(const RuntimeIdentity& identity);
  void OnLists(const RuntimeLists& lists);
  void OnLookFailed(const absl::Status& status);
  void TellOfRuntime();
  void RetryLook();
  /// Whether `support_` is of the runtime that is there now.
  bool KnowsHowToInject();
  void WhenRuntimeKnown(const HeldCall& held, std::function<void()> then);
  /// A connection to it has ended. Who comes next may be of another version,
  /// and what was under way has an unknown outcome.
  void OnRuntimeLost();
  /// The runtime may have sandboxes that the book lacks, or the other way
  /// round.
  void Doubt();
  void TellOfStrays();

  // shim_pods.cc
  /// Asks the source which of these pods it knows; `told` when all have been
  /// answered.
  void JudgePods(const std::set<PodUid>& pods, std::function<void()> told);
  void OnJudged(const PodUid& pod,
                const absl::StatusOr<std::shared_ptr<const PodDevices>>& pods);
  std::vector<UnknownContainer> UnknownContainers() const;
  void TellOfUnknownContainers();
  /// It has new ones, of which the caller has heard.
  void OnContainersOf(const PodUid& pod);
  void WarnOfContainersNotInPod(const Creation& creation,
                                const PodDevices& pod);
  void FillIn(RuntimeReport* report) const;

  // shim_holders.cc
  /// After the source has said what the pods have: asks the runtime about
  /// containers of which no annotation tells, then reports.
  void LookForHolders();
  std::optional<std::string> NextToInspect() const;
  void Inspect();
  void OnInspected(const std::string& id,
                   const absl::StatusOr<cri::ContainerStatus>& status);
  void UpdateHolders();
  void WatchHolders();
  /// The connection to the source has ended.
  void OnSourceLost();
  void ReportHolders(RuntimeReport* report) const;

  // shim_creation.cc
  void Create(const HeldCall& held);
  void Restore(const HeldCall& held);
  void Identify(const CreationPtr& creation);
  void OnUnknownSandbox(const CreationPtr& creation, const absl::Status& why);
  void FindDevices(const CreationPtr& creation);
  void OnDevices(const CreationPtr& creation,
                 const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod);
  /// What the source has said, and of which container where it is of one.
  std::pair<CreationAnswer, std::string> AnswerOf(
      const Creation& creation,
      const absl::StatusOr<std::shared_ptr<const PodDevices>>& pod);
  static std::vector<std::string> ContainersOf(const Creation& creation,
                                               const PodDevices& pod);
  void FailFor(const CreationPtr& creation, CreationAnswer answer,
               const std::string& container, const absl::Status& status);
  void PassWithoutDevices(const CreationPtr& creation, const absl::Status& why);
  void WaitForPod(const CreationPtr& creation);
  void WatchSource();
  void TakeBackFirst(const CreationPtr& creation, const std::string& container);
  /// The first container that has a device of a claim that no spec declares.
  std::optional<std::string> LacksSpecs(const Creation& creation,
                                        const PodDevices& pod);
  void AskForSpecs(const CreationPtr& creation, const std::string& container);
  void Inject(const CreationPtr& creation, const PodDevices* pod);
  void Plan(const CreationPtr& creation, const PodDevices* pod);

  // shim_sandbox.cc
  /// Goes on as Create does, so that RunPodSandbox knows the devices.
  void FindSandboxDevices(const HeldCall& held,
                          const cri::SandboxIdentity& identity);
  /// What is waited for, or done again, on behalf of a sandbox. False: as for
  /// containers.
  bool GoOnForSandbox(const CreationPtr& creation, CreationAnswer answer,
                      const std::string& container);
  void PlanSandbox(const CreationPtr& creation, const PodDevices* pod);
  /// For kSandboxDevicesAnnotation, which no client sets.
  absl::StatusOr<cri::ListEdit<NamedValue>> SandboxAnnotations(
      const cri::SandboxIdentity& identity, const PodDevices* pod) const;
  static PodBook::KnownContainer KnownAs(const Creation& creation,
                                         const std::string& sandbox_id,
                                         const std::string& name);
  void Learn(const CreationPtr& creation, const CriOutcome& outcome);

  void Forward(const HeldCall& held);
  void Fail(const HeldCall& held, const absl::Status& status);
  void Unreadable(const HeldCall& held, const absl::Status& why);
  void Tell(bool warning, std::string_view reason,
            const cri::SandboxIdentity& identity, const std::string& message);
  void CountBook();
  void CountSupport();
  template <typename Change>
  void Count(Change change) {
    const MutexLock lock(mutex_);
    change(info_);
  }
  /// `done` with whatever it gets, on the executor.
  template <typename Answer>
  std::function<void(Answer)> OnExecutor(std::function<void(Answer)> done) {
    return [executor = executor_, done = std::move(done)](Answer answer) {
      executor->Post([done, answer = std::move(answer)] { done(answer); });
    };
  }
  /// What a question asked for `held` may take.
  std::chrono::milliseconds TimeLeft(const Held& held) const;
  static absl::Status ForCaller(const absl::Status& status);
  static bool IsGood(const CriOutcome& outcome) {
    return outcome.forwarded && outcome.status.ok();
  }
  /// The runtime was called, and what it did is not known.
  static bool IsLost(const CriOutcome& outcome) {
    return outcome.forwarded && !outcome.answered;
  }

  CriShimOptions options_;
  const ShimIdentity identity_{options_.name, NewShimSession()};
  const CdiHost host_ = SystemCdiHost();
  const std::shared_ptr<Executor> executor_;
  peer::LogFold refusals_;  ///< Lines about calls that were refused.
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<CdiCache> specs_;

  /// Callers that the proxy turned away, and whether the event is under way.
  std::atomic<std::uint64_t> turned_away_ = 0;
  std::atomic<bool> telling_turned_away_ = false;

  mutable Mutex mutex_;
  CriShimInfo info_ DEVMGR_GUARDED_BY(mutex_);

  // On the executor.
  RuntimeClient client_;
  ShimRuntime* const fed_;                 ///< Null: there is none.
  std::unique_ptr<RuntimeLooker> looker_;  ///< For `fed_`.
  std::unique_ptr<DeviceSource> source_;   ///< Null: there is none.
  std::unique_ptr<RuntimeFeed> feed_;      ///< Null: there is no daemon.
  PodBook book_;
  std::unique_ptr<SandboxActuator>
      sandbox_actuator_;  ///< Null: pods are not ours to want.
  bool runtime_known_ = false;
  bool looked_ = false;  ///< At least once.
  bool looking_ = false;
  bool look_again_ = false;  ///< What is looked at now may be old by then.
  std::vector<Waiting> waiting_for_look_;
  std::vector<Waiting> came_since_;  ///< While it was under way.
  /// How long after a look that failed there is another one.
  static constexpr std::chrono::milliseconds kFirstRetry{100};
  static constexpr std::chrono::milliseconds kLastRetry{3'000};
  BackOff look_back_off_{kFirstRetry, kLastRetry};
  TimerId retry_ = 0;
  std::string look_error_;  ///< That was reported last; empty: it succeeded.
  RuntimeSupport support_;
  std::string runtime_name_ = "the runtime";
  std::map<std::uint64_t, Over> calls_;  ///< That are not over.
  struct Unknown {
    CreationPtr creation;
    TimerId timer = 0;
  };
  std::map<std::uint64_t, Unknown> unknown_;  ///< By call: its pod is.
  /// Pods with sandboxes that the source did not know when last asked.
  std::set<PodUid> unknown_pods_;
  /// What pods with sandboxes have, as the source said when last asked.
  std::map<PodUid, std::shared_ptr<const PodDevices>> given_;
  /// What containers have that no annotation tells of, by ID.
  std::map<std::string, HeldDevices> inspected_;
  std::vector<ForeignHolder> holders_;  ///< As they are reported.
  bool holders_known_ = false;          ///< `holders_` are all there are.
  bool has_lists_ = false;              ///< Of what the runtime runs.
  bool inspecting_ = false;
  std::set<std::string> not_inspected_;  ///< Containers: it failed this time.
  TimerId holder_timer_ = 0;
  std::set<std::string> told_unknown_;  ///< Unknown containers, by ID.
  std::uint64_t source_version_ = 0;
  bool watching_source_ = false;
  std::uint64_t last_event_ = 0;
  std::uint64_t decided_ = 0;  ///< Calls.
  std::uint64_t losses_ = 0;   ///< Of the runtime, while it served.
  std::unique_ptr<peer::LogFold> turned_away_log_;  ///< Null as we end.
  std::unique_ptr<RuntimeReporter> reporter_;  ///< Null: there is no source.

  std::unique_ptr<CriProxy> proxy_;
};

}  // namespace devmgr::shim
