// SPDX-License-Identifier: Apache-2.0
//
// The rooms of devices of plugins, put together.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "manager/manager.h"
#include "plugin/no_plugins.h"
#include "state/views.h"
#include "view/device_views.h"

namespace devmgr::manager {

resources::DeviceBook::Parts Manager::PartsOfDevices() {
  resources::DeviceBook::Parts parts{*executor_, state_, events_, metrics_};
  parts.numa_nodes = numa_nodes_;
  parts.now_ms = [this] { return NowMs(); };
  parts.grace_period = options_.device_plugins.grace_period;
  parts.probation = [this](const ResourceName& resource) {
    return ProbationOf(resource);
  };
  parts.sharing = SharingNow();
  parts.local_set = [this](const ResourceName& resource) {
    return LocalSetOf(resource);
  };
  parts.hardware = options_.hardware;
  parts.on_delta = [this](const ResourceName& resource,
                          const device::InventoryDelta& delta) {
    changes_->OnPluginHealth(resource, delta,
                             devices_->inventories().at(resource));
  };
  parts.on_devices = [this](const ResourceName& resource) {
    device_admission_->OnResource(resource);
    health_->OnDevices(resource);
    if (node_status_ != nullptr) node_status_->OnResources();
  };
  parts.on_connected = [this](const ResourceName& resource,
                              const plugin::PluginOptions& options) {
    ownership_->OnConnected(resource, options.pre_start_required);
  };
  parts.on_plugin = [this](const ResourceName& resource) {
    Wake({{WaitingFor::Kind::kResource, resource}});
  };
  parts.on_candidates = [this](const ResourceName& resource) {
    ownership_->Consider(resource);
    if (node_status_ != nullptr) node_status_->OnResources();
  };
  parts.on_forgotten = [this](const ResourceName& resource) {
    ownership_->Forget(resource);
  };
  parts.on_health = [this](const std::set<PodUid>& pods) {
    health_->OnHealth(pods);
  };
  parts.on_given_back = [this](const ObjectName& pod) {
    Wake({{WaitingFor::Kind::kPod, pod.ToString()}});
  };
  return parts;
}

pods::DeviceAdmission::Parts Manager::PartsOfAdmission() {
  pods::DeviceAdmission::Parts admission{
      *executor_, *ledger_, state_, *plugins_, *devices_, events_, metrics_};
  admission.policy = {options_.policies.authority, options_.policies.profile,
                      options_.policies.admission_wait};
  admission.authority = [this] { return authority_->authority(); };
  admission.sharing = SharingNow();
  admission.refuse_edit_conflicts =
      options_.device_plugins.refuse_edit_conflicts;
  admission.hardware = options_.hardware;
  admission.look_at_hardware =
      [this](
          std::vector<upkeep::NodeQuestion> questions,
          const std::function<void(const upkeep::HardwareLook::Facts&)>& done) {
        LookAtNodes(std::move(questions), done);
      };
  admission.queue.starvation_limit = options_.policies.starvation_limit;
  admission.now_ms = [this] { return NowMs(); };
  admission.is_ending = [this](const PodUid& pod) {
    const state::PodRecord* record = state_.FindPod(pod);
    return (record != nullptr &&
            record->phase == state::PodPhase::kReleasing) ||
           (actuator_ != nullptr && actuator_->IsUnwanted(pod));
  };
  admission.judge_again = [this](const PodUid& pod) { JudgeAgain(pod); };
  AddAlignment(&admission);
  return admission;
}

void Manager::StartDevices(const PluginsFactory& plugins) {
  const auto now_ms = [this] { return NowMs(); };
  const claim::Sharing sharing = SharingNow();
  ownership_ = std::make_unique<resources::ResourceOwnership>(
      resources::ResourceOwnership::Parts{*executor_, *ledger_, state_, events_,
                                          sharing, now_ms,
                                          [this](const ResourceName& resource) {
                                            return CandidatesFor(resource);
                                          }});
  StartChanges();
  devices_ = std::make_unique<resources::DeviceBook>(PartsOfDevices());
  pod_status_ = std::make_unique<upkeep::PodStatusKeeper>(PartsOfPodStatus());
  foreign_ =
      std::make_unique<resources::ForeignBook>(resources::ForeignBook::Parts{
          *executor_, *ledger_, state_, events_, devices_->inventories(),
          now_ms, boot_id_,
          [this](const ResourceName& resource, const DeviceId& id) {
            return devices_->HardwareOf(resource, id);
          }});
  StartDraHealth();
  health_ = std::make_unique<upkeep::HealthKeeper>(upkeep::HealthKeeper::Parts{
      *executor_, state_, *devices_, *dra_health_, events_,
      options_.health.policies, options_.health.unhealthy_for,
      options_.health.unknown_is_unhealthy, metrics_, now_ms,
      [this](const std::vector<PodUid>& pods) {
        if (!IsOn(Feature::kResourceHealthStatus)) return;
        pod_status_->OnPods({pods.begin(), pods.end()});
        observers_->Tell(
            [pods](DeviceManagerObserver& o) { o.OnResourceHealth(pods); });
      },
      [this](const PodAction& action) { ActOnPod(action); }});
  dra_health_->JudgeRestored();
  plugins_ = plugins ? plugins(*executor_, *devices_)
                     : plugin::NewNoPlugins(*executor_);
  device_admission_ =
      std::make_unique<pods::DeviceAdmission>(PartsOfAdmission());
  device_admission_->FreeUnanswered();
  use_ = std::make_unique<ledger::ContainerUse>(state_, resolve_, boot_id_);
  specs_ = std::make_unique<upkeep::SpecKeeper>(
      upkeep::SpecKeeper::Parts{*executor_, *ledger_, state_, *use_, events_,
                                boot_id_, options_.cdi_spec_dirs});
  starts_ =
      std::make_unique<pods::ContainerStarts>(pods::ContainerStarts::Parts{
          *executor_, *ledger_, state_, *devices_, *health_, *device_admission_,
          *plugins_, *specs_, *use_, boot_id_, options_.policies.profile,
          [this] { return local_claims_.get(); }});
}

}  // namespace devmgr::manager
