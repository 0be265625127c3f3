// SPDX-License-Identifier: Apache-2.0
//
// What the manager shows of itself: the projection of the ledger, and what only
// a running manager knows on top.
#include <devmgr/version.h>

#include <utility>

#include "claim/held_claims.h"
#include "common/status.h"
#include "manager/manager.h"
#include "node/plugin_endpoints.h"
#include "resources/object_views.h"
#include "state/history.h"
#include "state/views.h"

namespace devmgr::manager {
namespace {

/// Null when there is none of this UID.
const Pod* FindObject(const ObjectSnapshot& objects, const PodUid& uid) {
  for (const auto& [name, pod] : objects.pods) {
    if (pod->metadata.uid == uid.value) return pod.get();
  }
  for (const auto& [name, malformed] : objects.malformed_pods) {
    if (malformed->pod.metadata.uid == uid.value) return &malformed->pod;
  }
  return nullptr;
}

void CountPods(const std::vector<PodInfo>& pods, NodeInfo* node) {
  node->pods = static_cast<int>(pods.size());
  for (const PodInfo& pod : pods) {
    if (pod.state == PodState::kReady) ++node->pods_ready;
    if (pod.state == PodState::kWaiting) ++node->pods_waiting;
    if (pod.state == PodState::kRejected) ++node->pods_rejected;
  }
}

}  // namespace

NodeInfo Manager::Node() const {
  return OnLoop([&] {
    NodeInfo node;
    node.version = std::string(Version());
    node.node_name = options_.node_name;
    node.boot_id = boot_id_;
    node.authority = options_.policies.authority;
    node.profile = options_.policies.profile;
    node.actuate = options_.actuate;
    node.state_dir = options_.state_dir.string();
    node.ledger_sequence = state_.seq;
    node.ledger_error = std::string(ledger_->health().message());
    node.recovery = recovery_;
    node.started = started_;
    const auto objects = objects_->Current();
    node.source = host_.objects != nullptr ? host_.objects->Describe() : "none";
    node.source_complete = objects->complete;
    for (const ManifestProblem& problem : objects->problems) {
      node.source_problems.push_back(problem.ToString());
    }
    node.object_problems = objects->object_problems;
    CountPods(Pods(), &node);
    node.claims = static_cast<int>(state_.claims.size());
    node.plugins = static_cast<int>(Plugins().size());
    return node;
  });
}

std::vector<PodInfo> Manager::Pods() const {
  return OnLoop([&] {
    std::vector<PodInfo> pods;
    for (const auto& [uid, pod] : state_.pods)
      pods.push_back(pod_views_->InfoOf(*pod));
    return pods;
  });
}

absl::StatusOr<std::vector<ResourceDevices>> Manager::HeldDevices(
    const PodUid& pod, std::string_view container) const {
  return OnLoop([&]() -> absl::StatusOr<std::vector<ResourceDevices>> {
    const state::PodRecord* record = state_.FindPod(pod);
    if (record == nullptr) {
      return NotFoundError("pod with UID '{}' is not known", pod.value);
    }
    return state::HeldDevicesOf(*record, container);
  });
}

absl::StatusOr<ContainerClaims> Manager::HeldClaims(
    const PodUid& pod, std::string_view container) const {
  return OnLoop([&]() -> absl::StatusOr<ContainerClaims> {
    const state::PodRecord* record = state_.FindPod(pod);
    // Its needs are booked with its claims.
    if (record != nullptr && !record->needs.empty()) {
      return claim::HeldClaimsOf(state_, *record, container);
    }
    const auto objects = objects_->Current();
    if (const Pod* object = FindObject(*objects, pod)) {
      return claim::MissingClaimsOf(*object, container, *objects,
                                    plan_options_);
    }
    if (record != nullptr) return ContainerClaims();
    return NotFoundError("pod with UID '{}' is not known", pod.value);
  });
}

std::vector<ResourceDevices> Manager::AllocatableDevices() const {
  return OnLoop([&] { return devices_->Allocatable(); });
}

absl::StatusOr<PodInfo> Manager::PodInfoOf(const PodUid& pod) const {
  return OnLoop([&]() -> absl::StatusOr<PodInfo> {
    const state::PodRecord* record = state_.FindPod(pod);
    if (record == nullptr) {
      return NotFoundError("pod with UID '{}' is not known", pod.value);
    }
    return pod_views_->InfoOf(*record);
  });
}

std::vector<ClaimInfo> Manager::Claims() const {
  return OnLoop([&] {
    std::vector<ClaimInfo> claims;
    for (const auto& [uid, claim] : state_.claims) {
      claims.push_back(pod_views_->InfoOf(*claim));
    }
    return claims;
  });
}

std::vector<DebtInfo> Manager::Debts() const {
  return OnLoop([&] { return debts_->Debts(); });
}

std::vector<PluginInfo> Manager::Plugins() const {
  return OnLoop([&] {
    // A completion may look while we stop.
    if (drivers_ == nullptr) return std::vector<PluginInfo>();
    std::vector<PluginInfo> plugins = drivers_->Plugins();
    for (PluginInfo& driver : plugins) {
      if (!driver.serves) continue;
      const pods::DriverCalls::Load load = lifecycle_->LoadOf(driver.name);
      driver.calls = load.calls;
      driver.queued = load.queued;
      if (load.oldest_ms.has_value()) {
        driver.calling_since = state::WallTimeOf(*load.oldest_ms);
      }
    }
    for (const plugin::InstanceInfo& instance : plugins_->Instances()) {
      plugins.push_back(plugin::PluginInfoOf(instance));
      plugins.back().serves =
          instance.generation != 0 &&
          devices_->PrimaryOf(instance.resource) == instance.generation;
    }
    return plugins;
  });
}

std::vector<RegistrationSocketInfo> Manager::RegistrationSockets() const {
  return OnLoop([&] {
    return endpoints_ != nullptr ? endpoints_->RegistrationSockets()
                                 : std::vector<RegistrationSocketInfo>();
  });
}

std::vector<DeviceInfo> Manager::Devices() const {
  return OnLoop([&] {
    std::vector<DeviceInfo> devices = state::DevicesOf(state_);
    devices_->AddTo(&devices);
    resources::AddPublished(*objects_->Current(), options_.node_name, &devices);
    dra_health_->Describe(&devices);
    return devices;
  });
}

std::vector<ResourceInfo> Manager::Resources() const {
  return OnLoop([&] {
    std::vector<ResourceInfo> resources = state::ResourcesOf(state_);
    devices_->AddTo(&resources);
    resources::AddClasses(*objects_->Current(), state_, &resources);
    return resources;
  });
}

std::vector<DeviceClassInfo> Manager::DeviceClasses() const {
  return resources::DeviceClassesOf(*objects_->Current());
}

absl::Status Manager::ReportRuntime(const RuntimeReport& report) {
  return OnLoop([&] {
    const absl::Status taken = runtimes_.Take(report);
    if (taken.ok()) foreign_->Take(report);
    return taken;
  });
}

std::vector<ForeignHolderInfo> Manager::ForeignHolders() const {
  return OnLoop([&] { return state::ForeignHoldersOf(state_); });
}

std::vector<RuntimeInfo> Manager::Runtimes() const {
  return OnLoop([&] { return runtimes_.Runtimes(); });
}

std::vector<EventInfo> Manager::Events(std::uint64_t after) const {
  return OnLoop([&] { return events_.After(after); });
}

absl::StatusOr<std::vector<DecisionInfo>> Manager::History(
    std::uint64_t after, std::size_t most) const {
  auto batches = ledger_->History(after, most);
  if (!batches.ok()) return batches.status();
  std::vector<DecisionInfo> decisions;
  for (const state::Batch& batch : *batches) {
    decisions.push_back(state::DecisionInfoOf(batch));
  }
  return decisions;
}

absl::StatusOr<LedgerView> Manager::StateAt(const LedgerPoint& at) const {
  // Its records are shared, so that this costs the manager's thread little.
  state::State now = OnLoop([&] { return state_; });
  const auto read = [&](std::uint64_t after, std::size_t most) {
    return ledger_->History(after, most);
  };
  DEVMGR_ASSIGN_OR_RETURN(const state::StateThen then,
                          state::StateAt(std::move(now), at, read));
  return state::LedgerViewOf(then.state, then.time_ms);
}

}  // namespace devmgr::manager
