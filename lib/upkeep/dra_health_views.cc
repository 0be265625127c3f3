// SPDX-License-Identifier: Apache-2.0
//
// What pods and devices show of the health that drivers tell.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "claim/container_answer.h"
#include "state/views.h"
#include "upkeep/dra_health.h"

namespace devmgr::upkeep {
namespace {

/// As it stands in `allocatedResourcesStatus`.
std::string NameOf(const state::ClaimRecord& claim, const state::Want& want) {
  const std::string& name =
      want.pod_claim.empty() ? claim.name.name : want.pod_claim;
  return want.request.empty() ? fmt::format("claim:{}", name)
                              : fmt::format("claim:{}/{}", name, want.request);
}

ResourceHealth HealthOf(const std::string& id,
                        const device::EffectiveHealth& health) {
  ResourceHealth status;
  status.resource_id = id;
  status.health = device::HealthName(health.health);
  status.message = health.message;
  if (health.since_ms != 0) status.since = state::WallTimeOf(health.since_ms);
  return status;
}

/// Where a container stands in the pod.
std::size_t PlaceOf(const state::PodRecord& pod, const std::string& container) {
  const auto found =
      std::find_if(pod.needs.begin(), pod.needs.end(),
                   [&](const auto& need) { return need.name == container; });
  return static_cast<std::size_t>(found - pod.needs.begin());
}

}  // namespace

ResourceStatus DraHealth::StatusOf(const state::ClaimRecord& claim,
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
      status.resources.push_back(
          HealthOf(id, Find({driver, device.pool, device.device})));
    }
  }
  return status;
}

std::vector<ContainerResourceStatus> DraHealth::StatusOf(
    const state::PodRecord& pod) const {
  std::vector<ContainerResourceStatus> containers;
  for (const state::ContainerNeed& need : pod.needs) {
    std::map<std::string, ResourceStatus> items;
    for (const state::Want& want : need.wants) {
      const state::ClaimRecord* claim = parts_.state.FindClaim(want.claim);
      if (claim == nullptr) continue;
      ResourceStatus status = StatusOf(*claim, want);
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

void DraHealth::OnCommitting(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& pod : changes.pods) {
    if (!ledger::BeginsRelease(pod)) continue;
    std::vector<ContainerResourceStatus> status = StatusOf(*pod.now);
    if (!status.empty()) last_[pod.now->uid] = std::move(status);
  }
}

void DraHealth::AddTo(const state::PodRecord& pod,
                      std::vector<ContainerResourceStatus>* containers) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto last = last_.find(pod.uid);
  auto status = last != last_.end() ? last->second : StatusOf(pod);
  for (ContainerResourceStatus& ours : status) {
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

void DraHealth::Describe(std::vector<DeviceInfo>* devices) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (DeviceInfo& device : *devices) {
    if (device.driver.empty()) continue;
    const device::EffectiveHealth health =
        Find({device.driver, device.pool, device.device});
    device.health = Knows(device.driver) ? device::HealthName(health.health)
                                         : std::string_view();
    device.health_reason = health.message;
    device.since = state::WallTimeOf(health.since_ms);
  }
}

}  // namespace devmgr::upkeep
