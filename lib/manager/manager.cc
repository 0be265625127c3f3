// SPDX-License-Identifier: Apache-2.0
#include "manager/manager.h"

#include <devmgr/version.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "common/status.h"
#include "control/pool_changes.h"
#include "node/plugin_endpoints.h"
#include "plugin/no_plugins.h"
#include "pods/container_start.h"
#include "pods/local_claims.h"
#include "state/views.h"
#include "view/device_views.h"

namespace devmgr::manager {

std::unique_ptr<Manager> Manager::Start(ManagerParts parts) {
  DriversFactory drivers = std::move(parts.drivers);
  PluginsFactory plugins = std::move(parts.plugins);
  PluginEndpointsFactory endpoints = std::move(parts.endpoints);
  const bool has_pods_only = parts.has_pods_only;
  auto host = std::move(parts.hardware_host);
  auto manager = std::unique_ptr<Manager>(new Manager(std::move(parts)));
  const auto begin = [self = manager.get(), drivers = std::move(drivers),
                      plugins = std::move(plugins), has_pods_only] {
    self->Begin(drivers, plugins, has_pods_only);
  };
  manager->OnLoop([&] {
    manager->StartHardware(std::move(host));
    // Before what the endpoints bring; nothing that resolve needs waits for it.
    if (has_pods_only) manager->executor_->Post(begin);
    if (endpoints) manager->endpoints_ = endpoints(*manager->executor_);
    if (!has_pods_only) begin();
    return 0;
  });
  return manager;
}

void Manager::Begin(const DriversFactory& drivers,
                    const PluginsFactory& plugins, bool has_pods_only) {
  if (has_pods_only) LoadRest();
  if (loaded_.ok()) ledger_->OpenObjects();
  Start(drivers, plugins);
  PublishView();
  executor_->PublishAfterTasks([this] { PublishView(); });
  begun_ = true;
}

void Manager::LoadRest() {
  auto state = ledger_->Load();
  loaded_ = state.status();
  // Nothing is concluded from a part of it.
  state_ = state.ok() ? *std::move(state) : state::State();
  if (loaded_.ok()) return;
  node_news_.OnLedger(loaded_);
  endpoints_.reset();
}

void Manager::WaitUntilBegun() const {
  if (!begun_) OnLoop([] { return 0; });
}

absl::Status Manager::WaitUntilLoaded() const {
  WaitUntilBegun();
  return loaded_;
}

Manager::Manager(ManagerParts parts)
    : options_(std::move(parts.options)),
      host_(std::move(parts.host)),
      metrics_(host_.metrics != nullptr ? *host_.metrics : no_metrics_),
      boot_id_(host_.boot_id()),
      started_(host_.now()),
      numa_nodes_(std::move(parts.numa_nodes)),
      numa_(std::make_shared<const NumaInfo>(std::move(parts.numa))),
      alignment_(std::move(parts.alignment)),
      recovery_(checkpoint::RecoveryInfoOf(parts.store->Recovered())),
      on_wake_(std::move(parts.on_wake)),
      on_judge_again_(std::move(parts.on_judge_again)),
      executor_(parts.executor != nullptr
                    ? std::move(parts.executor)
                    : ThreadExecutor::Start("devmgr-main")),
      state_(std::move(parts.state)),
      observers_(
          std::make_shared<events::Observers>(*executor_, host_.observers)),
      events_(*executor_, options_.max_events, host_.now,
              [this](const EventInfo& event) {
                observers_->Tell(
                    [event](DeviceManagerObserver& o) { o.OnEvent(event); });
                if (host_.object_sink != nullptr) {
                  host_.object_sink->RecordEvent(event);
                }
              }),
      node_news_(
          {*executor_, events_, metrics_, host_.log, options_.node_name}) {
  for (const auto& [uid, pod] : state_.pods) {
    resolve_.Put(*pod, boot_id_);
    names_.Put(pod->name, state_.PodsNamed(pod->name));
  }
  ledger_ = std::make_unique<ledger::Ledger>(
      std::move(parts.store), &state_, [this] { return NowMs(); },
      [this](const state::Batch& batch) { PublishBatch(batch); },
      std::move(parts.ledger_executor),
      [this](const absl::Status& health) {
        executor_->Post([this, health] { node_news_.OnLedger(health); });
      });
}

void Manager::StartNodeStatus() {
  upkeep::NodeStatusKeeper::Parts parts{*executor_, events_, host_.object_sink,
                                        options_.node_name};
  if (IsOn(Feature::kDraOptionalNodeOperations)) {
    parts.features.emplace_back("DRAOptionalNodeOperations");
  }
  parts.keeps_zeroes = options_.policies.profile == Profile::kStrictKubelet;
  parts.resources = [this] { return view::ResourcesOf(Now()); };
  node_status_ = std::make_unique<upkeep::NodeStatusKeeper>(std::move(parts));
  node_status_->Start();
}

upkeep::PodStatusKeeper::Parts Manager::PartsOfPodStatus() {
  upkeep::PodStatusKeeper::Parts parts{*executor_, events_, host_.object_sink};
  parts.runtime = host_.runtime;
  parts.node_name = options_.node_name;
  parts.objects = [this] { return objects_->Current(); };
  parts.pod_info = [this](const PodUid& uid) { return FindInfo(uid); };
  parts.now = host_.now;
  return parts;
}

std::optional<PodInfo> Manager::FindInfo(const PodUid& uid) const {
  const state::PodRecord* pod = state_.FindPod(uid);
  if (pod == nullptr) return std::nullopt;
  return InfoOf(*pod);
}

std::int64_t Manager::NowMs() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             host_.now().time_since_epoch())
      .count();
}

bool Manager::IsOn(Feature feature) const {
  return devmgr::IsOn(options_.feature_gates, feature);
}

claim::PlanOptions Manager::OptionsOfPlans() {
  claim::PlanOptions options;
  options.extended_resources = IsOn(Feature::kDraExtendedResource);
  options.pod_groups = IsOn(Feature::kDraWorkloadResourceClaims);
  options.optional_operations = IsOn(Feature::kDraOptionalNodeOperations);
  options.why_not_served = [this](const ResourceName& resource) -> std::string {
    if (options_.policies.profile == Profile::kStrictKubelet) return "";
    return ownership_->WhyNotServed(resource);
  };
  options.sharing = SharingNow();
  options.claim_names_without_status = options_.dra.compat;
  options.old_drivers = options_.dra.compat;
  if (options_.hardware.one_holder) {
    options.hardware_of = [this](const state::DeviceKey& device) {
      hardware_->Follow(objects_->Current()->resource_slices);
      return hardware_->Find(device);
    };
  }
  return options;
}

void Manager::Start(const DriversFactory& drivers,
                    const PluginsFactory& plugins) {
  node_news_.OnOpened(recovery_, options_.feature_gates);
  ReportNuma();
  const auto now_ms = [this] { return NowMs(); };
  drivers_ = drivers(*executor_, [this](const std::string& driver) {
    executor_->Post([this, driver] {
      // It may come before the rooms are there, and after they are gone.
      if (drivers_ != nullptr && news_ != nullptr)
        news_->OnDriverChange(driver);
    });
  });
  StartAuthority();
  StartDevices(plugins);
  pods::ObjectBook::Options book;
  ObjectSource* const source = loaded_.ok() ? host_.objects : nullptr;
  book.source = source;
  book.events = &events_;
  book.boot_id = boot_id_;
  book.node_name = options_.node_name;
  book.feature_gates = options_.feature_gates;
  book.allocates = [this] { return authority_->Allocates(); };
  book.now_ms = now_ms;
  book.on_objects = [this](const std::vector<WaitingFor>& changed) {
    OnClasses();
    source_problems_->OnObjects(*objects_->Current());
    observers_->Tell([](DeviceManagerObserver& o) { o.OnObjects(); });
    OnSourceForAuthority();
    if (actuator_ != nullptr) actuator_->OnObjects();
    pod_status_->OnObjects();
    Wake(changed);
  };
  objects_ = std::make_unique<pods::ObjectBook>(*executor_, *ledger_, state_,
                                                std::move(book));
  StartLocalClaims();
  plan_options_ = OptionsOfPlans();
  const claim::DebtRules rules{options_.dra.debt_policy,
                               options_.dra.debt_policies};
  const auto calls_at_once =
      std::min(pods::CallQueue::kCallsAtOnce,
               static_cast<std::size_t>(std::max(options_.dra.max_calls, 1)));
  lifecycle_ = std::make_unique<pods::PodLifecycle>(pods::PodLifecycle::Parts{
      *executor_, *ledger_, state_, *drivers_, *objects_, *device_admission_,
      local_claims_.get(), events_, metrics_, boot_id_, plan_options_, rules,
      calls_at_once, IsOn(Feature::kDraConsumableCapacity), now_ms,
      [this](const std::string& driver,
             const pods::DriverCalls::PreparedClaims& prepared,
             std::function<void(const upkeep::SpecKeeper::Answer&)> done) {
        specs_->LookAtAnswer(driver, prepared, std::move(done));
      },
      [this](const PodUid& uid) { OnPodChanged(uid); },
      [this](
          const std::string& driver, pods::DriverCalls::PreparedClaims prepared,
          const std::function<void(pods::DriverCalls::PreparedClaims)>& done) {
        IdentifyPrepared(driver, std::move(prepared), done);
      },
      authority_.get()});
  debts_ = std::make_unique<upkeep::DebtKeeper>(upkeep::DebtKeeper::Parts{
      *executor_, *ledger_, state_, events_, rules, now_ms,
      [this](const std::vector<ClaimUid>& claims) {
        lifecycle_->Drive(claims);
      },
      [this](const std::string& driver, const std::vector<ClaimUid>& claims) {
        lifecycle_->DriveAnew(driver, claims);
      },
      [this](const ClaimUid& claim, const std::string& driver) {
        return lifecycle_->Attempts(claim, driver);
      }});
  debts_->Start();
  slices_ = std::make_unique<upkeep::SliceKeeper>(upkeep::SliceKeeper::Parts{
      *executor_, events_, host_.object_sink, options_.dra.slice_grace_period,
      [this](const std::string& driver) {
        return drivers_->IsConnected(driver);
      }});
  slices_->Start();
  news_ = std::make_unique<upkeep::DriverNews>(
      upkeep::DriverNews::Parts{*executor_, *drivers_, events_, *slices_,
                                *debts_, [this](const std::string& driver) {
                                  Wake({{WaitingFor::Kind::kDriver, driver}});
                                }});
  node_ = NodeOf();
  claim::PlanOptions shown = plan_options_;
  shown.hardware_of = nullptr;  // It lives on this thread.
  terms_ = std::make_shared<const view::Terms>(view::Terms{
      boot_id_, options_.node_name, IsOn(Feature::kResourceHealthStatus),
      IsOn(Feature::kResourceHealthStatusMessage), std::move(shown), rules,
      options_.hardware,
      [node = options_.node_name,
       gates = options_.feature_gates](const ObjectSnapshot& objects) {
        return control::InvalidPools(objects, node, gates);
      }});
  check_ = std::make_unique<pods::LedgerCheck>(pods::LedgerCheck::Parts{
      *executor_, *ledger_, state_, *use_, *drivers_, *lifecycle_, *devices_,
      *objects_, *specs_, boot_id_, options_.cdi_spec_dirs, *hardware_});
  StartNodeStatus();
  pod_status_->Start();
  StartActuator();
  RegisterListeners();
  if (loaded_.ok()) authority_->Start();
  StartRuntime();
  if (source == nullptr) return;
  source_problems_ = std::make_unique<pods::SourceProblems>(
      *executor_, events_, host_.objects->Describe());
  host_.objects->Subscribe(
      [this] { executor_->Post([this] { objects_->Refresh(); }); });
  objects_->Refresh();
}

Manager::~Manager() {
  // Intake closes, operations end, calls are cancelled and their completions
  // awaited, the ledger drains; what is posted after that finds it stopped.
  WaitUntilBegun();
  if (host_.objects != nullptr) host_.objects->Unsubscribe();
  if (host_.runtime != nullptr) host_.runtime->Unsubscribe();
  OnLoop([&] {
    actuator_.reset();
    lifecycle_->Stop();
    starts_->Stop();
    if (hardware_look_ != nullptr) hardware_look_->Close();
    dra_health_->KeepLeases();
    return 0;
  });
  specs_->Stop();
  if (hardware_look_ != nullptr) hardware_look_->Stop();
  OnLoop([&] {
    endpoints_.reset();
    plugins_.reset();
    drivers_.reset();
    return 0;
  });
  ledger_->Stop();
  executor_->Stop();
}

void Manager::StartActuator() {
  if (options_.actuate == Actuate::kNone || !loaded_.ok()) return;
  pods::Actuator::Parts parts{
      *executor_,
      state_,
      *lifecycle_,
      *objects_,
      options_.actuate == Actuate::kSource,
      options_.retries,
      [this](const PodUid& uid) { return FindInfo(uid); },
      [this] { return ++last_operation_; },
      host_.now,
      host_.runtime};
  parts.metrics = &metrics_;
  parts.schedules = [this] {
    return authority_->authority() != Authority::kScheduler;
  };
  parts.stop = [this](const PodUid& uid) {
    if (evictions_ != nullptr) evictions_->Stop(uid);
  };
  parts.fails_alike = [this](const PodUid& uid) {
    return local_claims_ != nullptr && local_claims_->FailsAlike(uid);
  };
  if (options_.policies.audit_wakeups) {
    parts.would_admit = [this](const Pod& pod) {
      return lifecycle_->WouldAdmit(pod);
    };
  }
  actuator_ = std::make_unique<pods::Actuator>(std::move(parts));
}

absl::Status Manager::CheckWanting() const {
  switch (options_.actuate) {
    case Actuate::kWanted:
      return absl::OkStatus();
    case Actuate::kSource:
      return FailedPreconditionError(
          "the pods that are wanted are those of the source: "
          "DeviceManagerOptions::actuate is kSource, not kWanted");
    case Actuate::kNone:
      break;
  }
  return FailedPreconditionError(
      "the manager drives no pods by itself: DeviceManagerOptions::actuate is "
      "kNone, not kWanted");
}

absl::Status Manager::WantPod(const Pod& pod) {
  DEVMGR_RETURN_IF_ERROR(CheckWanting());
  if (pod.metadata.uid.empty()) {
    return InvalidArgumentError("pod '{}' has no UID",
                                pod.metadata.FullName().ToString());
  }
  executor_->Post([this, wanted = std::make_shared<const Pod>(pod)] {
    if (actuator_ != nullptr) actuator_->Want(wanted);
  });
  return absl::OkStatus();
}

absl::Status Manager::UnwantPod(const PodUid& pod) {
  DEVMGR_RETURN_IF_ERROR(CheckWanting());
  executor_->Post([this, pod] {
    if (actuator_ != nullptr) actuator_->Unwant(pod);
  });
  return absl::OkStatus();
}

OperationId Manager::StartAdmitPod(const Pod& pod, AdmitDone done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const AdmitDone& end) {
                       lifecycle_->Admit(id, pod, end);
                     });
}

OperationId Manager::StartPreparePod(const PodUid& pod, Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const Done& end) {
                       lifecycle_->Prepare(id, pod, end);
                     });
}

OperationId Manager::StartUnpreparePod(const PodUid& pod, Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const Done& end) {
                       lifecycle_->Unprepare(id, pod, end);
                     });
}

OperationId Manager::StartReleasePod(const PodUid& pod, Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const Done& end) {
                       lifecycle_->Release(id, pod, end);
                     });
}

OperationId Manager::StartEndPod(const PodUid& pod, Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const Done& end) {
                       lifecycle_->End(id, pod, end);
                     });
}

OperationId Manager::StartBeforeContainerStart(const PodUid& pod,
                                               const ContainerName& container,
                                               Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod, container](OperationId id, const Done& end) {
                       starts_->BeforeStart(id, pod, container, end);
                     });
}

OperationId Manager::StartReleaseInitContainers(const PodUid& pod, Done done) {
  return StartOnLoop(std::move(done),
                     [this, pod](OperationId id, const Done& end) {
                       starts_->ReleaseInit(id, pod, end);
                     });
}

void Manager::Cancel(OperationId operation) {
  executor_->Post([this, operation] {
    lifecycle_->Cancel(operation);
    starts_->Cancel(operation);
  });
}

void Manager::PublishBatch(const state::Batch& batch) {
  for (const state::Change& change : batch.decision.changes) {
    if (const auto* put = std::get_if<state::PutPod>(&change)) {
      resolve_.Put(*put->pod, boot_id_);
    } else if (const auto* erase = std::get_if<state::ErasePod>(&change)) {
      resolve_.Erase(erase->uid);
    }
  }
  executor_->Post([this, batch] { ApplyBatch(batch); });
}

void Manager::OnPodChanged(const PodUid& uid) {
  const state::PodRecord* pod = state_.FindPod(uid);
  if (pod == nullptr) return;
  names_.Put(pod->name, state_.PodsNamed(pod->name));
  const PodInfo info = InfoOf(*pod);
  if (info.state != PodState::kReady && !info.message.empty()) {
    resolve_.Explain(uid, info.message);
  }
  observers_->Tell([info](DeviceManagerObserver& o) { o.OnPod(info, false); });
  if (actuator_ != nullptr) actuator_->OnPod(info);
  pod_status_->OnPods({uid});
}

void Manager::Wake(const std::vector<WaitingFor>& changes) {
  if (on_wake_) on_wake_(changes);
  if (actuator_ != nullptr) actuator_->OnWake(changes);
}

void Manager::JudgeAgain(const PodUid& pod) {
  if (on_judge_again_) on_judge_again_(pod);
  if (actuator_ != nullptr) actuator_->OnJudgeAgain(pod);
}

absl::StatusOr<std::shared_ptr<const ContainerDevices>>
Manager::ContainerDevicesOf(const PodUid& pod,
                            const ContainerName& container) const {
  return resolve_.Find(pod, container);
}

absl::StatusOr<std::shared_ptr<const PodDevices>> Manager::PodDevicesOf(
    const PodUid& pod) const {
  return resolve_.Find(pod);
}

absl::StatusOr<PodUid> Manager::FindPod(const ObjectName& name) const {
  return names_.Find(name);
}

std::shared_ptr<const ObjectSnapshot> Manager::Objects() const {
  WaitUntilBegun();
  return objects_->Current();
}

std::unique_ptr<Observation> Manager::Observe(DeviceManagerObserver& observer) {
  return observers_->Add(observer);
}

bool Manager::RunUntilFinished(
    const std::function<void(std::function<void()> finish)>& begin) {
  if (executor_->IsCurrent()) return false;
  executor_->RunUntilFinished(begin);
  return true;
}

}  // namespace devmgr::manager
