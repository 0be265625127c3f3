// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/aligned_plan.h"
#include "checkpoint/ledger_store.h"
#include "claim/published_hardware.h"
#include "common/executor.h"
#include "common/feature_gates.h"
#include "common/mutex.h"
#include "common/run_on.h"
#include "common/status.h"
#include "events/event_log.h"
#include "events/observers.h"
#include "ledger/changes.h"
#include "ledger/container_use.h"
#include "ledger/ledger.h"
#include "ledger/pod_names.h"
#include "ledger/resolve_table.h"
#include "manager/change_stream.h"
#include "plugin/plugins.h"
#include "pods/actuator.h"
#include "pods/authority_keeper.h"
#include "pods/container_start.h"
#include "pods/device_admission.h"
#include "pods/ledger_check.h"
#include "pods/object_book.h"
#include "pods/pod_lifecycle.h"
#include "pods/source_problems.h"
#include "pods/taint_evictions.h"
#include "resources/device_book.h"
#include "resources/foreign_book.h"
#include "resources/resource_ownership.h"
#include "simulation/node_moment.h"
#include "state/decision.h"
#include "state/state.h"
#include "upkeep/debt_keeper.h"
#include "upkeep/dra_health.h"
#include "upkeep/driver_news.h"
#include "upkeep/hardware_look.h"
#include "upkeep/health_keeper.h"
#include "upkeep/node_news.h"
#include "upkeep/node_status_keeper.h"
#include "upkeep/pod_status_keeper.h"
#include "upkeep/runtime_book.h"
#include "upkeep/runtime_news.h"
#include "upkeep/slice_keeper.h"
#include "upkeep/spec_keeper.h"
#include "upkeep/withheld_devices.h"
#include "view/moment.h"

namespace devmgr::dra {
class Drivers;
}

namespace devmgr::node {
class PluginEndpoints;
}

namespace devmgr::manager {

/// Makes the drivers on the manager's executor; `on_change` is to be called
/// there when a driver came, connected or left. Tests hand in fakes.
using DriversFactory = std::function<std::unique_ptr<dra::Drivers>(
    Executor& executor, std::function<void(const std::string&)> on_change)>;

/// The same for device plugins, which tell `listener`.
using PluginsFactory = std::function<std::unique_ptr<plugin::Plugins>(
    Executor& executor, plugin::PluginListener& listener)>;

/// Opens the endpoints at which drivers and plugins register, on the manager's
/// executor, perhaps before those are made; they are closed before those.
using PluginEndpointsFactory =
    std::function<std::shared_ptr<node::PluginEndpoints>(Executor& executor)>;

/// What a manager is put together from; every seam is filled.
struct ManagerParts {
  DeviceManagerOptions options;
  Host host;
  std::unique_ptr<checkpoint::LedgerStore> store;
  state::State state;  ///< What the store holds.
  /// It holds more: the manager's thread loads it before it does anything.
  bool has_pods_only = false;
  DriversFactory drivers;
  PluginsFactory plugins;            ///< Null: there are none.
  PluginEndpointsFactory endpoints;  ///< Null: none can register.
  /// Of the machine, ascending; empty: not known.
  std::vector<std::int64_t> numa_nodes;
  NumaInfo numa;  ///< The same for people, without devices.
  /// How pods are aligned to them. Null: they are not.
  std::shared_ptr<const admission::AlignmentRules> alignment;
  /// Where device nodes are looked at. Nothing: they are not.
  std::optional<upkeep::HardwareHost> hardware_host = std::nullopt;
  /// Where the manager lives, and where its ledger works. Null: a thread each.
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Executor> ledger_executor;
  /// Hear what the actuator hears of pods that wait. For tests; may be null.
  std::function<void(const std::vector<WaitingFor>&)> on_wake;
  std::function<void(const PodUid&)> on_judge_again;
};

/// Reads the machine's NUMA nodes below `options.sysfs_dir` into `parts`. With
/// a policy of alignment:
///   InvalidArgument      the nodes cannot be read; the message names the file
///   FailedPrecondition   the options cannot be followed on this machine
/// Without one what is wrong is noted in `parts.numa`.
absl::Status ReadNuma(ManagerParts* parts);

/// The device manager: one thread (`devmgr-main`) on which everything lives
/// that decides the order of things, the ledger thread, and the published
/// answers that anybody may read. Nothing blocks on its thread.
class Manager final : public DeviceManager, private Maintenance {
 public:
  using DeviceManager::Done;

  static std::unique_ptr<Manager> Start(ManagerParts parts);
  ~Manager() override;

  OperationId StartAdmitPod(const Pod& pod, AdmitDone done) override;
  OperationId StartPreparePod(const PodUid& pod, Done done) override;
  OperationId StartUnpreparePod(const PodUid& pod, Done done) override;
  OperationId StartReleasePod(const PodUid& pod, Done done) override;
  OperationId StartEndPod(const PodUid& pod, Done done) override;
  OperationId StartBeforeContainerStart(const PodUid& pod,
                                        const ContainerName& container,
                                        Done done) override;
  OperationId StartReleaseInitContainers(const PodUid& pod, Done done) override;
  absl::Status WantPod(const Pod& pod) override;
  absl::Status UnwantPod(const PodUid& pod) override;
  absl::Status ReportRuntime(const RuntimeReport& report) override;
  void Cancel(OperationId operation) override;

  absl::StatusOr<std::shared_ptr<const ContainerDevices>> ContainerDevicesOf(
      const PodUid& pod, const ContainerName& container) const override;
  absl::StatusOr<std::shared_ptr<const PodDevices>> PodDevicesOf(
      const PodUid& pod) const override;
  absl::StatusOr<PodUid> FindPod(const ObjectName& name) const override;
  std::shared_ptr<const ObjectSnapshot> Objects() const override;

  absl::Status WaitUntilLoaded() const override;
  std::shared_ptr<ObjectSpace> KeptObjects() const override {
    return ledger_->Objects();
  }
  std::shared_ptr<const NodeView> View() const override;
  absl::StatusOr<Simulation> Simulate(
      const SimulationRequest& request) const override;
  SimulationCounts Simulations() const override;
  std::vector<EventInfo> Events(std::uint64_t after) const override;
  absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from, std::chrono::milliseconds wait) const override {
    DEVMGR_RETURN_IF_ERROR(WaitUntilLoaded());
    return changes_->Read(from, wait);
  }
  Maintenance& maintenance() override { return *this; }
  [[nodiscard]] std::unique_ptr<Observation> Observe(
      DeviceManagerObserver& observer) override;

 private:
  explicit Manager(ManagerParts parts);

  // Maintenance.
  void StartForceReleaseClaim(const ObjectName& claim,
                              const std::string& reason, Done done) override;
  void StartHandOverResource(const ResourceName& resource, ResourceOwner owner,
                             const std::string& reason, Done done) override;
  void StartConfirmSource(const std::string& reason, Done done) override;
  void StartFreeHolder(const std::string& container_id,
                       const std::string& reason, Done done) override;
  void StartRecheckDevices(const std::string& name, const std::string& device,
                           const std::string& reason, Done done) override;
  void StartSetAuthority(Authority to, const std::string& reason,
                         Done done) override;
  void StartRecordWish(const PodWish& wish, Done done) override;
  void StartRecordSliceDeletion(const SliceDeletion& deletion,
                                Done done) override;
  absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after, std::size_t most) const override;
  absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) const override;
  absl::StatusOr<FsckReport> Fsck(FsckMode mode) override {
    DEVMGR_RETURN_IF_ERROR(WaitUntilLoaded());
    return check_->Run(mode);
  }

  /// Runs `work` on the manager's thread, with the number of a new operation
  /// and what to call at its end; fails it when there is no ledger.
  template <typename Result, typename Work>
  OperationId StartOnLoop(std::function<void(Result)> done, Work work) {
    const OperationId id = ++last_operation_;
    const auto end = Completion(std::move(done));
    executor_->Post([this, id, end, work = std::move(work)] {
      if (!loaded_.ok()) return end(loaded_);
      work(id, end);
    });
    return id;
  }
  /// A completion that calls `done` when what led to it can be seen.
  template <typename Result>
  std::function<void(Result)> Completion(std::function<void(Result)> done) {
    return [this, done = std::move(done)](Result result) {
      executor_->Afterwards([done, result = std::move(result)]() mutable {
        done(std::move(result));
      });
    };
  }
  /// Runs `view` on the manager's thread and waits for its value.
  template <typename View>
  auto OnLoop(View view) const -> decltype(view()) {
    return RunOn(*executor_, view);
  }
  bool RunUntilFinished(
      const std::function<void(std::function<void()> finish)>& begin) override;

  /// The first task, or the second one after that which has opened the
  /// endpoints.
  void Begin(const DriversFactory& drivers, const PluginsFactory& plugins,
             bool has_pods_only);
  void LoadRest();
  void WaitUntilBegun() const;
  void Start(const DriversFactory& drivers, const PluginsFactory& plugins);
  void StartDevices(const PluginsFactory& plugins);
  resources::DeviceBook::Parts PartsOfDevices();
  pods::DeviceAdmission::Parts PartsOfAdmission();
  void AddAlignment(pods::DeviceAdmission::Parts* parts);
  void ReportNuma();
  bool IsOn(Feature feature) const;
  /// Of the host's clock, Unix time.
  std::int64_t NowMs() const;
  /// What the rooms know now.
  view::Moment Now() const;
  PodInfo InfoOf(const state::PodRecord& pod) const;
  /// Nothing when the ledger does not know it.
  std::optional<PodInfo> FindInfo(const PodUid& uid) const;
  std::shared_ptr<const NodeInfo> NodeOf() const;
  std::vector<std::shared_ptr<const PluginInfo>> PluginsNow() const;
  /// Each task ends with it.
  void PublishView();
  void StartRuntime();
  void OnRuntime();
  /// Pods of the ledger may run at any time.
  void ExpectRuns();
  claim::PlanOptions OptionsOfPlans();
  void StartChanges();
  void StartDraHealth();
  /// Of a resource or driver: for how long what did not work has to work.
  device::Probation::Rules ProbationOf(const std::string& name) const;
  /// Devices of a driver, as `pool/device`, are withheld no more.
  void WakeForOffered(const std::string& driver,
                      const std::vector<std::string>& devices);
  void ReportRechecked(const std::string& name, const std::string& id);
  /// Those of a resource or driver; null: it has none.
  const device::Probation* WithheldOf(const std::string& name) const;
  void StartNodeStatus();
  upkeep::PodStatusKeeper::Parts PartsOfPodStatus();
  /// The source has other objects.
  void OnClasses();
  /// Who could serve a resource now.
  claim::Candidates CandidatesFor(const ResourceName& resource) const;
  claim::Sharing SharingNow() const;
  /// A pod that wants the resource is to have it through a claim.
  bool IsServedByClass(const ResourceName& resource) const;
  void StartAuthority();
  void OnAuthority();
  /// The source has other objects.
  void OnSourceForAuthority();
  std::optional<std::int64_t> LocalSetOf(const ResourceName& resource) const;
  /// This node allocates claims, or has allocated some that are still used.
  bool HasLocalClaims() const;
  void StartLocalClaims();
  void StartHardware(std::optional<upkeep::HardwareHost> host);
  void LookAtNodes(
      std::vector<upkeep::NodeQuestion> questions,
      const std::function<void(const upkeep::HardwareLook::Facts&)>& done);
  /// Which hardware a driver's answer is: of devices that the claim has for
  /// itself.
  void IdentifyPrepared(
      const std::string& driver, pods::DriverCalls::PreparedClaims prepared,
      const std::function<void(pods::DriverCalls::PreparedClaims)>& done);
  void StartTaintEvictions();
  void ActOnPod(const PodAction& action);
  /// What is decided by now, for a simulation.
  simulation::NodeMoment MomentNow() const;
  void PublishBatch(const state::Batch& batch);  // ledger thread
  /// The rooms that follow what is committed, in their order.
  void RegisterListeners();
  void ApplyBatch(const state::Batch& batch);
  void KeepGone(const ledger::Changes& changes);
  void ShowPods(const ledger::Changes& changes);
  void ShowGone(const PodInfo& pod);
  /// Decisions of a repair or an operator are events.
  void ReportDecision(const state::Decision& decision);
  void WakePods(const ledger::Changes& changes);
  void OnPodChanged(const PodUid& uid);
  void StartActuator();
  absl::Status CheckWanting() const;
  void JudgeAgain(const PodUid& pod);
  void Wake(const std::vector<WaitingFor>& changes);

  // Constant after construction.
  const DeviceManagerOptions options_;
  const Host host_;
  MetricsSink no_metrics_;
  MetricsSink& metrics_;  ///< The host's, or one that counts nothing.
  const std::string boot_id_;
  const WallTime started_;
  const std::vector<std::int64_t> numa_nodes_;
  const std::shared_ptr<const NumaInfo> numa_;
  const std::shared_ptr<const admission::AlignmentRules> alignment_;
  const RecoveryInfo recovery_;
  const std::function<void(const std::vector<WaitingFor>&)> on_wake_;
  const std::function<void(const PodUid&)> on_judge_again_;

  // Thread-safe by themselves.
  ledger::ResolveTable resolve_;
  ledger::PodNames names_;
  std::atomic<OperationId> last_operation_{0};
  mutable std::atomic<int> simulations_{0};  ///< Under way.
  mutable Mutex simulated_mutex_;
  mutable SimulationCounts simulated_ DEVMGR_GUARDED_BY(simulated_mutex_);
  const std::unique_ptr<Executor> executor_;
  mutable Mutex view_mutex_;
  std::shared_ptr<const NodeView> view_ DEVMGR_GUARDED_BY(view_mutex_);

  /// Why the ledger could not be read to its end: then every operation fails,
  /// and only answers are given. Constant since `begun_`.
  absl::Status loaded_;
  std::atomic<bool> begun_{false};

  // The manager's thread only, but for the ledger, which has its own.
  state::State state_;       ///< The durable projection as this thread sees it.
  std::uint64_t views_ = 0;  ///< Published so far.
  std::shared_ptr<const NodeInfo> node_;
  const std::shared_ptr<events::Observers> observers_;
  events::EventLog events_;
  upkeep::NodeNews node_news_;
  upkeep::RuntimeBook runtimes_{events_, host_.now};
  std::vector<ledger::OnCommitted> on_committed_;
  std::vector<PodInfo> gone_;  ///< By the batch that is being passed on.
  std::unique_ptr<ledger::Ledger> ledger_;
  std::unique_ptr<pods::ObjectBook> objects_;
  std::unique_ptr<ChangeStream> changes_;
  claim::PlanOptions plan_options_;
  std::shared_ptr<const view::Terms> terms_;
  std::unique_ptr<pods::AuthorityKeeper> authority_;
  std::unique_ptr<resources::ResourceOwnership> ownership_;
  ObjectMap<DeviceClass> classes_;  ///< Those that it has heard of.
  std::unique_ptr<resources::DeviceBook> devices_;
  std::unique_ptr<resources::ForeignBook> foreign_;
  std::unique_ptr<upkeep::WithheldDevices> withheld_;
  std::unique_ptr<upkeep::DraHealth> dra_health_;
  std::unique_ptr<upkeep::HealthKeeper> health_;
  std::unique_ptr<dra::Drivers> drivers_;
  std::unique_ptr<plugin::Plugins> plugins_;
  std::unique_ptr<pods::DeviceAdmission> device_admission_;
  std::unique_ptr<ledger::ContainerUse> use_;
  std::unique_ptr<upkeep::SpecKeeper> specs_;
  std::unique_ptr<claim::PublishedHardware> hardware_;
  std::unique_ptr<upkeep::HardwareLook> hardware_look_;  ///< May be null.
  std::unique_ptr<pods::ContainerStarts> starts_;
  std::unique_ptr<pods::TaintEvictions> evictions_;  ///< With the next one.
  std::unique_ptr<pods::LocalClaims> local_claims_;  ///< Null: no ledger.
  std::unique_ptr<pods::PodLifecycle> lifecycle_;
  std::unique_ptr<upkeep::RuntimeNews> runtime_news_;  ///< Null: no runtime.
  bool expects_runs_ = false;  ///< What Host::runtime has heard last.
  std::unique_ptr<pods::Actuator> actuator_;  ///< Null with Actuate::kNone.
  std::unique_ptr<upkeep::DebtKeeper> debts_;
  std::unique_ptr<upkeep::SliceKeeper> slices_;
  std::unique_ptr<upkeep::NodeStatusKeeper> node_status_;
  std::unique_ptr<upkeep::PodStatusKeeper> pod_status_;
  std::unique_ptr<upkeep::DriverNews> news_;
  std::unique_ptr<pods::LedgerCheck> check_;
  std::unique_ptr<pods::SourceProblems> source_problems_;
  std::shared_ptr<node::PluginEndpoints> endpoints_;
};

}  // namespace devmgr::manager
