// SPDX-License-Identifier: Apache-2.0
#include "view/health_views.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "claim/container_answer.h"
#include "device/health_status.h"
#include "state/views.h"

namespace devmgr::view {
namespace {

/// As it stands in `allocatedResourcesStatus`.
std::string NameOf(const state::ClaimRecord& claim, const state::Want& want) {
  const std::string& name =
      want.pod_claim.empty() ? claim.name.name : want.pod_claim;
  return want.request.empty() ? fmt::format("claim:{}", name)
                              : fmt::format("claim:{}/{}", name, want.request);
}

ResourceHealth StatusOf(const std::string& id,
                        const device::EffectiveHealth& health) {
  ResourceHealth status;
  status.resource_id = id;
  status.health = PublicOf(health.health);
  status.message = health.message;
  if (health.since_ms != 0) status.since = state::WallTimeOf(health.since_ms);
  return status;
}

/// Where a container stands in the pod.
std::size_t PlaceOf(const state::PodRecord& pod,
                    const ContainerName& container) {
  const auto found =
      std::find_if(pod.needs.begin(), pod.needs.end(),
                   [&](const auto& need) { return need.name == container; });
  return static_cast<std::size_t>(found - pod.needs.begin());
}

/// What drivers say of devices at one moment.
struct Said {
  const DriversHealth& health;
  std::int64_t steady_ms;

  ResourceStatus StatusOf(const state::ClaimRecord& claim,
                          const state::Want& want) const {
    ResourceStatus status;
    status.name = NameOf(claim, want);
    std::set<std::string> seen;
    for (const auto& [driver, record] : claim.drivers) {
      for (const state::PreparedDevice& device : record.devices) {
        if (!claim::Serves(device, want.request)) continue;
        const std::string id =
            device.cdi_device_ids.empty()
                ? fmt::format("{}/{}/{}", driver, device.pool, device.device)
                : device.cdi_device_ids.front();
        if (!seen.insert(id).second) continue;
        const state::DeviceKey key(driver, device.pool, device.device);
        status.resources.push_back(
            view::StatusOf(id, HealthOf(health, key, steady_ms)));
      }
    }
    return status;
  }
};

/// The part that containers have of device plugins.
std::vector<ContainerResourceStatus> PluginResourcesOf(
    const Resources& resources, const state::PodRecord& pod) {
  const auto find =
      [&](const ResourceName& resource,
          const std::string& id) -> const device::InventoryDevice* {
    const Resource* known = resources.Find(resource);
    return known != nullptr ? device::FindDevice(known->devices, id) : nullptr;
  };
  std::vector<ContainerResourceStatus> containers;
  for (const device::ContainerHealthStatus& from :
       device::HealthStatusOf(state::ReservationsOf(pod), find)) {
    ContainerResourceStatus& container = containers.emplace_back();
    container.container = from.container;
    for (const device::ResourceHealthStatus& resource : from.resources) {
      ResourceStatus& status = container.resources.emplace_back();
      status.name = resource.resource;
      for (const device::DeviceHealthStatus& device : resource.devices) {
        status.resources.push_back(StatusOf(
            device.id, {device.health, device.message, 0, device.since_ms}));
      }
    }
  }
  return containers;
}

/// Adds what containers have by claims, in the order of the pod's containers.
void Merge(const state::PodRecord& pod,
           std::vector<ContainerResourceStatus> claimed,
           std::vector<ContainerResourceStatus>* containers) {
  for (ContainerResourceStatus& ours : claimed) {
    const auto same = std::find_if(
        containers->begin(), containers->end(), [&](const auto& container) {
          return container.container == ours.container;
        });
    if (same == containers->end()) {
      containers->push_back(std::move(ours));
      continue;
    }
    std::move(ours.resources.begin(), ours.resources.end(),
              std::back_inserter(same->resources));
    std::sort(same->resources.begin(), same->resources.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  std::stable_sort(containers->begin(), containers->end(),
                   [&](const auto& a, const auto& b) {
                     return PlaceOf(pod, a.container) <
                            PlaceOf(pod, b.container);
                   });
}

}  // namespace

device::EffectiveHealth HealthOf(const DriversHealth& health,
                                 const state::DeviceKey& device,
                                 std::int64_t steady_ms) {
  const auto& [driver, pool, name] = device;
  if (const auto* over = health.over.Find(device)) return *over;
  const device::DriverHealth* known = health.drivers.Find(driver);
  return known != nullptr ? known->Find({pool, name}, steady_ms)
                          : device::EffectiveHealth();
}

std::vector<ContainerResourceStatus> ClaimedResourcesOf(
    const DriversHealth& health, std::int64_t steady_ms,
    const state::State& state, const state::PodRecord& pod) {
  const Said said{health, steady_ms};
  std::vector<ContainerResourceStatus> containers;
  for (const state::ContainerNeed& need : pod.needs) {
    std::map<std::string, ResourceStatus> items;
    for (const state::Want& want : need.wants) {
      const state::ClaimRecord* claim = state.FindClaim(want.claim);
      if (claim == nullptr) continue;
      ResourceStatus status = said.StatusOf(*claim, want);
      if (status.resources.empty()) continue;
      std::string name = status.name;
      items.emplace(std::move(name), std::move(status));
    }
    if (items.empty()) continue;
    ContainerResourceStatus& container = containers.emplace_back();
    container.container = need.name;
    for (auto& [name, status] : items) {
      container.resources.push_back(std::move(status));
    }
  }
  return containers;
}

std::vector<ContainerResourceStatus> AllocatedResourcesOf(
    const Moment& moment, const state::PodRecord& pod) {
  std::vector<ContainerResourceStatus> containers =
      PluginResourcesOf(moment.resources, pod);
  const auto* last = moment.health.last.Find(pod.uid);
  Merge(pod,
        last != nullptr ? *last
                        : ClaimedResourcesOf(moment.health, moment.steady_ms,
                                             moment.state, pod),
        &containers);
  return containers;
}

void AddDriversHealth(const Moment& moment, std::vector<DeviceInfo>* devices) {
  for (DeviceInfo& device : *devices) {
    if (device.driver.empty()) continue;
    const device::EffectiveHealth health =
        HealthOf(moment.health, {device.driver, device.pool, device.device},
                 moment.steady_ms);
    device.health.reset();
    if (moment.health.drivers.contains(device.driver)) {
      device.health = PublicOf(health.health);
    }
    device.health_reason = health.message;
    device.since = state::WallTimeOf(health.since_ms);
  }
}

}  // namespace devmgr::view
