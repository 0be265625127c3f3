// SPDX-License-Identifier: Apache-2.0
#include "view/health_changes.h"

#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "view/device_views.h"

namespace devmgr::view {
namespace {

using device::Health;

/// Devices of these are in one change.
using Alike = std::tuple<PodUid, std::string, Health, std::string>;

/// Pods that hold devices of a plugin, by device.
std::multimap<DeviceId, PodUid> HoldersOf(const state::State& state,
                                          const ResourceName& resource) {
  std::multimap<DeviceId, PodUid> holders;
  for (auto held = state.device_holders.lower_bound({resource, {}, {}});
       held != state.device_holders.end() && std::get<0>(*held) == resource;
       ++held) {
    holders.emplace(std::get<1>(*held), std::get<2>(*held));
  }
  return holders;
}

/// Pods that hold a device of a driver.
std::set<PodUid> HoldersOf(const state::State& state,
                           const state::DeviceKey& device) {
  std::set<PodUid> pods;
  for (const ClaimUid& uid : state.ClaimsOf(device)) {
    const state::ClaimRecord* claim = state.FindClaim(uid);
    pods.insert(claim->pods.begin(), claim->pods.end());
  }
  return pods;
}

std::vector<DeviceChange> ChangesOf(
    const state::State& state, const DeviceChange& common,
    const std::map<Alike, std::vector<DeviceId>>& alike) {
  std::vector<DeviceChange> changes;
  for (const auto& [what, devices] : alike) {
    const auto& [pod, pool, health, why] = what;
    DeviceChange& change = changes.emplace_back(common);
    change.kind = DeviceChangeKind::kHealthChanged;
    change.reason = "Reported";
    change.message = why;
    change.health = PublicOf(health);
    change.pod_uid = pod;
    if (const auto* record = state.FindPod(pod)) change.pod = record->name;
    change.pool = pool;
    change.devices = devices;
  }
  return changes;
}

Health HealthOf(DeviceHealth health) {
  switch (health) {
    case DeviceHealth::kHealthy:
      return Health::kHealthy;
    case DeviceHealth::kUnhealthy:
      return Health::kUnhealthy;
    case DeviceHealth::kUnknown:
      break;
  }
  return Health::kUnknown;
}

}  // namespace

std::vector<HealthNews> NewsOf(const device::InventoryDelta& delta,
                               const device::Inventory& inventory) {
  std::vector<HealthNews> news;
  const auto why = [&](const DeviceId& id) {
    const device::InventoryDevice* known = inventory.Find(id);
    return std::string(device::HealthReasonText(
        known != nullptr ? known->reason : device::HealthReason::kNotListed));
  };
  for (const DeviceId& id : delta.added) {
    const Health health = inventory.HealthOf(id);
    if (health != Health::kHealthy) news.push_back({id, "", health, why(id)});
  }
  for (const auto& changed : delta.changed) {
    news.push_back({changed.id, "", changed.after, why(changed.id)});
  }
  for (const DeviceId& id : delta.vanished) {
    news.push_back({id, "", inventory.HealthOf(id), why(id)});
  }
  return news;
}

std::vector<DeviceChange> ChangesOfPlugin(const state::State& state,
                                          const ResourceName& resource,
                                          const std::vector<HealthNews>& news) {
  if (news.empty()) return {};
  const auto holders = HoldersOf(state, resource);
  std::map<Alike, std::vector<DeviceId>> alike;
  for (const HealthNews& one : news) {
    const auto [begin, end] = holders.equal_range(one.device);
    for (auto held = begin; held != end; ++held) {
      alike[{held->second, "", one.health, one.why}].push_back(one.device);
    }
    if (begin != end) continue;
    alike[{PodUid{}, "", one.health, one.why}].push_back(one.device);
  }
  DeviceChange common;
  common.resource = resource;
  return ChangesOf(state, common, alike);
}

std::vector<DeviceChange> ChangesOfDriver(const state::State& state,
                                          const std::string& driver,
                                          const std::vector<HealthNews>& news) {
  std::map<Alike, std::vector<DeviceId>> alike;
  for (const HealthNews& one : news) {
    const auto pods = HoldersOf(state, {driver, one.pool, one.device});
    for (const PodUid& pod : pods) {
      alike[{pod, one.pool, one.health, one.why}].push_back(one.device);
    }
    if (!pods.empty()) continue;
    alike[{PodUid{}, one.pool, one.health, one.why}].push_back(one.device);
  }
  DeviceChange common;
  common.driver = driver;
  return ChangesOf(state, common, alike);
}

std::vector<DeviceChange> HealthOfAll(const Moment& moment, WallTime time) {
  std::map<std::string, std::vector<HealthNews>> plugins;
  std::map<std::string, std::vector<HealthNews>> drivers;
  for (const DeviceInfo& device : DevicesOf(moment)) {
    const auto health = device.health ? device.health->known() : std::nullopt;
    if (!health.has_value() || *health == DeviceHealth::kHealthy) continue;
    auto& news = device.driver.empty() ? plugins[device.resource]
                                       : drivers[device.driver];
    news.push_back(
        {device.device, device.pool, HealthOf(*health), device.health_reason});
  }
  std::vector<DeviceChange> all(1);
  all.front().kind = DeviceChangeKind::kHealthReset;
  all.front().message = "devices that are not named from here on work";
  const auto add = [&](std::vector<DeviceChange> some) {
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  };
  for (const auto& [resource, news] : plugins) {
    add(ChangesOfPlugin(moment.state, resource, news));
  }
  for (const auto& [driver, news] : drivers) {
    add(ChangesOfDriver(moment.state, driver, news));
  }
  for (DeviceChange& change : all) {
    change.time = time;
    change.reason = "Snapshot";
  }
  return all;
}

}  // namespace devmgr::view
