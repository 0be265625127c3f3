// SPDX-License-Identifier: Apache-2.0
#include "upkeep/health_keeper.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::upkeep {
namespace {

constexpr char kDeviceUnhealthy[] = "DeviceUnhealthy";
constexpr char kDeviceHealthy[] = "DeviceHealthy";

}  // namespace

HealthKeeper::~HealthKeeper() {
  for (const auto& [name, timer] : timers_) parts_.executor.Cancel(timer);
}

void HealthKeeper::OnHealth(const std::set<PodUid>& pods) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (pods.empty()) return;
  if (pending_.empty()) parts_.executor.Post([this] { TellPending(); });
  pending_.insert(pods.begin(), pods.end());
}

void HealthKeeper::TellPending() {
  const std::vector<PodUid> pods(pending_.begin(), pending_.end());
  pending_.clear();
  parts_.tell(pods);
}

void HealthKeeper::OnDevices(const std::string& name) {
  DEVMGR_ASSERT_ON(parts_.executor);
  Faults faults;
  for (const device::FaultyDevice& device : FaultyOf(name)) {
    faults[{device.pod, device.id}] = {device.since_ms, device.reason};
  }
  ReportFaults(name, faults);
  Judge(name);
}

std::vector<device::FaultyDevice> HealthKeeper::FaultyOf(
    const std::string& name) const {
  const bool unknown = parts_.unknown_is_unhealthy.contains(name);
  std::vector<device::FaultyDevice> faulty =
      parts_.dra_health.Knows(name) ? parts_.dra_health.Faulty(name, unknown)
                                    : parts_.devices.Faulty(name, unknown);
  const auto before = faults_.find(name);
  for (device::FaultyDevice& device : faulty) {
    if (device.since_ms != 0) continue;
    device.since_ms = parts_.now_ms();
    if (before == faults_.end()) continue;
    const auto known = before->second.find({device.pod, device.id});
    if (known != before->second.end()) device.since_ms = known->second.since_ms;
  }
  return faulty;
}

std::size_t HealthKeeper::HeldCount(const std::string& name) const {
  if (parts_.dra_health.Knows(name)) return parts_.dra_health.HeldCount(name);
  return parts_.devices.Held(name).size();
}

bool HealthKeeper::Works(const std::string& name, const PodUid& pod,
                         const std::string& id) const {
  if (parts_.dra_health.Knows(name)) {
    return parts_.dra_health.Works(name, pod, id);
  }
  const auto inventory = parts_.devices.inventories().find(name);
  if (inventory == parts_.devices.inventories().end()) return false;
  const auto& held = parts_.devices.Held(name);
  const auto holder = held.find(id);
  return holder != held.end() && holder->second.pod == pod &&
         inventory->second.HealthOf(id) == device::Health::kHealthy;
}

void HealthKeeper::ReportFaults(const std::string& name, const Faults& now) {
  const Faults& before = faults_[name];
  for (const auto& [device, fault] : now) {
    const std::string& why = fault.why;
    if (before.contains(device)) continue;
    const auto& [uid, id] = device;
    const state::PodRecord* pod = parts_.state.FindPod(uid);
    if (pod == nullptr) continue;
    parts_.events.Add(
        true, kDeviceUnhealthy, "Pod", pod->name,
        fmt::format("device {} of {} does not work{}{}", api::Quoted(id), name,
                    why.empty() ? "" : ": ", why));
  }
  for (const auto& [device, fault] : before) {
    const auto& [uid, id] = device;
    if (now.contains(device) || !Works(name, uid, id)) continue;
    const state::PodRecord* pod = parts_.state.FindPod(uid);
    if (pod == nullptr) continue;
    parts_.events.Add(
        false, kDeviceHealthy, "Pod", pod->name,
        fmt::format("device {} of {} works again", api::Quoted(id), name));
  }
  if (now.empty()) {
    faults_.erase(name);
  } else {
    faults_[name] = now;
  }
}

bool HealthKeeper::HasPolicy(const std::string& name,
                             HealthPolicy policy) const {
  const auto found = parts_.policies.find(name);
  return found != parts_.policies.end() && found->second == policy;
}

bool HealthKeeper::Fails(const std::string& name) const {
  return HasPolicy(name, HealthPolicy::kFail);
}

void HealthKeeper::Judge(const std::string& name) {
  if (!Fails(name)) return;
  const device::HealthGuard::Ruling ruling =
      guards_.try_emplace(name, parts_.unhealthy_for.count())
          .first->second.Judge(FaultyOf(name), HeldCount(name),
                               parts_.now_ms());
  if (ruling.holds_back) {
    parts_.events.Add(true, "HealthActionsHeldBack", "Resource", {"", name},
                      "most of its held devices do not work; no pod is failed "
                      "for that in the next minute");
    parts_.metrics.OnPodAction(PodActionKindName(PodAction::Kind::kFail),
                               kDeviceUnhealthy, "held_back");
  }
  parts_.executor.Cancel(std::exchange(timers_[name], 0));
  if (ruling.next_ms.has_value()) {
    const std::int64_t delay =
        std::clamp<std::int64_t>(*ruling.next_ms - parts_.now_ms(), 1, 60'000);
    timers_[name] = parts_.executor.PostAfter(std::chrono::milliseconds(delay),
                                              [this, name] { Judge(name); });
  }
  if (ruling.fail.has_value()) Fail(name, *ruling.fail);
}

void HealthKeeper::Fail(const std::string& name,
                        const device::FaultyDevice& device) {
  const state::PodRecord* pod = parts_.state.FindPod(device.pod);
  if (pod == nullptr) return;
  PodAction action;
  action.pod = device.pod;
  action.name = pod->name;
  action.reason = kDeviceUnhealthy;
  action.message = fmt::format("device {} of {} has not worked for {} ms",
                               api::Quoted(device.id), name,
                               parts_.now_ms() - device.since_ms);
  parts_.events.Add(true, "PodToFail", "Pod", pod->name, action.message);
  parts_.metrics.OnPodAction(PodActionKindName(action.kind), action.reason,
                             "requested");
  if (parts_.act_on_pod) parts_.act_on_pod(action);
}

absl::Status HealthKeeper::CheckStart(const state::PodRecord& pod,
                                      const ContainerName& container) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const state::DeviceHold& hold : pod.holds) {
    if (hold.container != container || !hold.Holds()) continue;
    if (!Fails(hold.resource)) continue;
    const auto inventory = parts_.devices.inventories().find(hold.resource);
    if (inventory == parts_.devices.inventories().end()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      const device::InventoryDevice* known = inventory->second.Find(device.id);
      if (known == nullptr ||
          known->device.health != device::Health::kUnhealthy) {
        continue;
      }
      return FailedPreconditionError(
          "device {} of {} in container '{}' of pod '{}' does not work",
          api::Quoted(device.id), hold.resource, container,
          pod.name.ToString());
    }
  }
  return parts_.dra_health.CheckStart(
      pod, container,
      [this](const std::string& driver) { return Fails(driver); });
}

std::set<ResourceName> HealthKeeper::ToReplace(
    const state::PodRecord& pod, const ContainerName& container) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::set<ResourceName> resources;
  for (const state::DeviceHold& hold : pod.holds) {
    const std::string& name = hold.resource.value;
    if (hold.container != container || !hold.Holds() ||
        !HasPolicy(name, HealthPolicy::kReplace)) {
      continue;
    }
    const auto inventory = parts_.devices.inventories().find(hold.resource);
    if (inventory == parts_.devices.inventories().end()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      const device::Health health = inventory->second.HealthOf(device.id);
      if (health == device::Health::kUnhealthy ||
          (health == device::Health::kUnknown &&
           parts_.unknown_is_unhealthy.contains(name))) {
        resources.insert(hold.resource);
      }
    }
  }
  return resources;
}

std::set<ClaimUid> HealthKeeper::ClaimsToReplace(
    const state::PodRecord& pod, const ContainerName& container) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return parts_.dra_health.FaultyClaims(
      pod, container, [this](const std::string& driver) {
        return HasPolicy(driver, HealthPolicy::kReplace);
      });
}

}  // namespace devmgr::upkeep
