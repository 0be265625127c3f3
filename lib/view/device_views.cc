// SPDX-License-Identifier: Apache-2.0
#include "view/device_views.h"

#include <cstddef>
#include <map>
#include <utility>

#include "state/views.h"
#include "view/hardware_views.h"
#include "view/health_views.h"

namespace devmgr::view {
namespace {

void Describe(const device::InventoryDevice& known, DeviceInfo* info) {
  info->health = PublicOf(known.device.health);
  info->health_reason = device::HealthReasonText(known.reason);
  if (known.withheld && known.device.health == device::Health::kHealthy) {
    info->health_reason +=
        "; no pod gets it before it has worked for long enough";
  }
  info->since = state::WallTimeOf(known.since_ms);
  info->numa_nodes = known.device.numa_nodes;
}

/// Adds what plugins list to what pods hold of it.
void AddListed(const Resources& resources, std::vector<DeviceInfo>* devices) {
  std::map<std::pair<std::string, std::string>, std::size_t> held;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const DeviceInfo& device = (*devices)[i];
    if (!device.resource.empty()) held[{device.resource, device.device}] = i;
  }
  for (const auto& [name, resource] : resources) {
    for (const device::InventoryDevice& known : resource.devices) {
      const auto found = held.find({name, known.device.id});
      if (found != held.end()) {
        Describe(known, &(*devices)[found->second]);
        continue;
      }
      DeviceInfo info;
      info.device = known.device.id;
      info.resource = name;
      Describe(known, &info);
      devices->push_back(std::move(info));
    }
  }
}

/// Adds what plugins say of resources to what the ledger holds.
void AddServed(const Resources& served, std::vector<ResourceInfo>* resources) {
  std::map<ResourceName, ResourceInfo> all;
  for (ResourceInfo& info : *resources) {
    std::string name = info.name;
    all[std::move(name)] = std::move(info);
  }
  for (const auto& [name, resource] : served) {
    ResourceInfo& info = all[name];
    info.name = name;
    if (!info.owner.has_value()) info.owner = ResourceOwner::kDevicePlugin;
    info.state = PublicOf(resource.state);
    info.since = state::WallTimeOf(resource.since_ms);
    // What classes serve is not counted.
    if (info.owner != ResourceOwner::kDevicePlugin) continue;
    info.capacity = resource.figures.capacity;
    info.allocatable = resource.figures.allocatable;
    if (!resource.local_set.has_value()) continue;
    info.local = std::min(*resource.local_set, info.allocatable);
    info.allocatable -= info.local;
  }
  resources->clear();
  for (auto& [name, info] : all) resources->push_back(std::move(info));
}

}  // namespace

std::vector<DeviceInfo> DevicesOf(const Moment& moment) {
  std::vector<DeviceInfo> devices = state::DevicesOf(moment.state);
  if (moment.terms == nullptr) return devices;
  AddListed(moment.resources, &devices);
  AddPublished(*moment.objects, moment.terms->node_name, &devices);
  AddDriversHealth(moment, &devices);
  AddHardware(moment, &devices);
  return devices;
}

std::vector<ResourceInfo> ResourcesOf(const Moment& moment) {
  std::vector<ResourceInfo> resources = state::ResourcesOf(moment.state);
  if (moment.terms == nullptr) return resources;
  AddServed(moment.resources, &resources);
  AddClasses(*moment.objects, moment.state, &resources);
  return resources;
}

std::vector<ResourceDevices> AllocatableOf(const Moment& moment) {
  std::vector<ResourceDevices> all;
  for (const auto& [name, resource] : moment.resources) {
    ResourceDevices devices{name, {}};
    for (const device::InventoryDevice& known : resource.devices) {
      if (!known.Usable()) continue;
      devices.devices.push_back({known.device.id, known.device.numa_nodes});
    }
    if (!devices.devices.empty()) all.push_back(std::move(devices));
  }
  return all;
}

}  // namespace devmgr::view
