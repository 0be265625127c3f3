// SPDX-License-Identifier: Apache-2.0
//
// What the manager shows of itself: the projection of the ledger, and what only
// a running manager knows on top.
#include <devmgr/version.h>

#include <map>
#include <set>
#include <utility>

#include "claim/container_answer.h"
#include "claim/device_class.h"
#include "claim/held_claims.h"
#include "common/status.h"
#include "manager/manager.h"
#include "manager/plugin_endpoints.h"
#include "state/history.h"
#include "state/views.h"

namespace devmgr::manager {
namespace {

/// `owner`: the class that has its extended resource name; null when it has
/// none.
DeviceClassInfo InfoOf(const DeviceClass& item, const DeviceClass* owner) {
  DeviceClassInfo info;
  info.name = item.metadata.name;
  info.extended_resource_name = item.extended_resource_name;
  info.implicit_resource_name = ImplicitResourceName(item.metadata.name);
  if (info.implicit_resource_name.empty()) {
    info.note = "no implicit name: set extendedResourceName";
  }
  if (owner != nullptr && owner != &item) {
    info.shadowed_by = owner->metadata.name;
  }
  return info;
}

PluginInfo InfoOf(const plugin::InstanceInfo& instance) {
  PluginInfo info;
  info.name = instance.resource;
  info.kind = "device-plugin";
  info.endpoint = instance.endpoint;
  info.version = instance.version;
  info.state = plugin::InstanceStateName(instance.state);
  info.registered_since = instance.registered_since;
  info.last_error = instance.last_error;
  info.via = plugin::ViaName(instance.via);
  info.breaker = peer::BreakerStateName(instance.breaker);
  info.quarantined_until = instance.quarantined_until;
  info.devices = instance.devices;
  info.calls = instance.calls;
  info.queued = instance.queued;
  return info;
}

/// Adds what slices publish to the devices that claims hold.
void AddPublished(const ObjectSnapshot& objects, const std::string& node_name,
                  std::vector<DeviceInfo>* devices) {
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const DeviceInfo& device : *devices) {
    known.insert({device.driver, device.pool, device.device});
  }
  for (const auto& [name, slice] : objects.resource_slices) {
    if (!node_name.empty() && !slice->all_nodes &&
        slice->node_name != node_name) {
      continue;
    }
    for (const SliceDevice& device : slice->devices) {
      if (!known.insert({slice->driver, slice->pool, device.name}).second) {
        continue;
      }
      DeviceInfo info;
      info.driver = slice->driver;
      info.pool = slice->pool;
      info.device = device.name;
      devices->push_back(std::move(info));
    }
  }
}

/// The devices that pods hold for a name through claims.
std::set<state::DeviceKey> HeldByClaims(const state::State& state,
                                        const std::string& resource,
                                        const PodUid& uid) {
  std::set<state::DeviceKey> devices;
  const state::PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr) return devices;
  for (const state::ContainerNeed& need : pod->needs) {
    for (const state::Want& want : need.wants) {
      const state::ClaimRecord* claim = state.FindClaim(want.claim);
      if (want.resource != resource || claim == nullptr) continue;
      for (const auto& [driver, part] : claim->drivers) {
        for (const state::PreparedDevice& device : part.devices) {
          if (!claim::Serves(device, want.request)) continue;
          devices.emplace(driver, device.pool, device.device);
        }
      }
    }
  }
  return devices;
}

/// Adds the names that classes have, and what pods hold through them.
void AddClasses(const ObjectSnapshot& objects, const state::State& state,
                std::vector<ResourceInfo>* resources) {
  std::map<std::string, ResourceInfo> all;
  for (ResourceInfo& info : *resources) {
    std::string name = info.name;
    all[std::move(name)] = std::move(info);
  }
  std::map<std::string, std::set<std::string>> drivers;
  const auto add = [&](const std::string& name, const DeviceClass& item) {
    ResourceInfo& info = all[name];
    info.name = name;
    info.device_class = item.metadata.name;
    if (info.owner.empty()) {
      info.owner = state::BackingName(state::Backing::kClass);
    }
    for (std::string& driver : claim::DriversNamedBy(item)) {
      drivers[name].insert(std::move(driver));
    }
  };
  for (const auto& [name, item] :
       claim::ClassesByResource(objects.device_classes)) {
    add(name, *item);
  }
  std::set<std::string> held;
  for (const auto& [name, pod] : state.class_holders) {
    held.insert(name);
    const auto devices = HeldByClaims(state, name, pod);
    ResourceInfo& info = all[name];
    info.name = name;
    info.held += static_cast<std::int64_t>(devices.size());
    for (const auto& [driver, pool, device] : devices) {
      drivers[name].insert(driver);
    }
  }
  for (const auto& [name, item] : objects.device_classes) {
    const std::string implicit = ImplicitResourceName(item->metadata.name);
    if (held.contains(implicit)) add(implicit, *item);
  }
  resources->clear();
  for (auto& [name, info] : all) {
    if (info.owner.empty()) {
      info.owner = state::BackingName(state::Backing::kClass);
    }
    const std::set<std::string>& names = drivers[name];
    info.drivers.assign(names.begin(), names.end());
    resources->push_back(std::move(info));
  }
}

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
    node.authority =
        options_.authority == Authority::kNode ? "node" : "scheduler";
    node.profile =
        options_.profile == Profile::kDefault ? "default" : "strict-kubelet";
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
    for (const auto& [uid, pod] : state_.pods) pods.push_back(InfoOf(*pod));
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
    return InfoOf(*record);
  });
}

std::vector<ClaimInfo> Manager::Claims() const {
  return OnLoop([&] {
    std::vector<ClaimInfo> claims;
    for (const auto& [uid, claim] : state_.claims) {
      claims.push_back(InfoOf(*claim));
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
      plugins.push_back(devmgr::manager::InfoOf(instance));
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
    AddPublished(*objects_->Current(), options_.node_name, &devices);
    dra_health_->Describe(&devices);
    return devices;
  });
}

std::vector<ResourceInfo> Manager::Resources() const {
  return OnLoop([&] {
    std::vector<ResourceInfo> resources = state::ResourcesOf(state_);
    devices_->AddTo(&resources);
    AddClasses(*objects_->Current(), state_, &resources);
    return resources;
  });
}

std::vector<DeviceClassInfo> Manager::DeviceClasses() const {
  const auto objects = objects_->Current();
  const auto owners = claim::ClassesByResource(objects->device_classes);
  std::vector<DeviceClassInfo> classes;
  for (const auto& [name, item] : objects->device_classes) {
    const auto owner = owners.find(item->extended_resource_name);
    classes.push_back(devmgr::manager::InfoOf(
        *item, owner != owners.end() ? owner->second : nullptr));
  }
  return classes;
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
