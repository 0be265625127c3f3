// SPDX-License-Identifier: Apache-2.0
//
// What the book of devices shows of itself.
#include <chrono>
#include <utility>

#include "device/health_status.h"
#include "resources/device_book.h"

namespace devmgr::resources {
namespace {

WallTime TimeOf(std::int64_t unix_ms) {
  return WallTime(std::chrono::milliseconds(unix_ms));
}

void Describe(const device::InventoryDevice& known, DeviceInfo* info) {
  info->health = device::HealthName(known.device.health);
  info->health_reason = device::HealthReasonText(known.reason);
  info->since = TimeOf(known.since_ms);
  info->numa_nodes = known.device.numa_nodes;
}

}  // namespace

void DeviceBook::AddTo(std::vector<DeviceInfo>* devices) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::map<std::pair<std::string, std::string>, std::size_t> held;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const DeviceInfo& device = (*devices)[i];
    if (!device.resource.empty()) held[{device.resource, device.device}] = i;
  }
  for (const auto& [resource, inventory] : inventories_) {
    for (const device::InventoryDevice& known : inventory.devices()) {
      const auto found = held.find({resource, known.device.id});
      if (found != held.end()) {
        Describe(known, &(*devices)[found->second]);
        continue;
      }
      DeviceInfo info;
      info.device = known.device.id;
      info.resource = resource;
      Describe(known, &info);
      devices->push_back(std::move(info));
    }
  }
}

void DeviceBook::AddTo(std::vector<ResourceInfo>* resources) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::map<std::string, ResourceInfo> all;
  for (ResourceInfo& info : *resources) {
    std::string name = info.name;
    all[std::move(name)] = std::move(info);
  }
  for (const auto& [name, inventory] : inventories_) {
    ResourceInfo& info = all[name];
    info.name = name;
    if (info.owner.empty()) {
      info.owner = state::BackingName(state::Backing::kPlugin);
    }
    info.state = device::EndpointStateName(inventory.state());
    info.since = TimeOf(inventory.state_since_ms());
    // What classes serve is not counted.
    if (info.owner != state::BackingName(state::Backing::kPlugin)) continue;
    info.capacity = inventory.figures().capacity;
    info.allocatable = inventory.figures().allocatable;
  }
  resources->clear();
  for (auto& [name, info] : all) resources->push_back(std::move(info));
}

std::vector<ContainerResourceStatus> DeviceBook::StatusOf(
    const PodUid& pod) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<ContainerResourceStatus> containers;
  for (const device::ContainerHealthStatus& from :
       device::HealthStatusOf(pod, reservations_, inventories_)) {
    ContainerResourceStatus& container = containers.emplace_back();
    container.container = from.container;
    for (const device::ResourceHealthStatus& resource : from.resources) {
      ResourceStatus& status = container.resources.emplace_back();
      status.name = resource.resource;
      for (const device::DeviceHealthStatus& device : resource.devices) {
        ResourceHealth& health = status.resources.emplace_back();
        health.resource_id = device.id;
        health.health = device::HealthName(device.health);
        health.message = device.message;
        if (device.since_ms != 0) health.since = TimeOf(device.since_ms);
      }
    }
  }
  return containers;
}

std::vector<ResourceDevices> DeviceBook::Allocatable() const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<ResourceDevices> resources;
  for (auto& [name, devices] : device::AllocatableDevices(inventories_)) {
    ResourceDevices& resource = resources.emplace_back();
    resource.resource = name;
    for (const device::Device& device : devices) {
      resource.devices.push_back({device.id, device.numa_nodes});
    }
  }
  return resources;
}

}  // namespace devmgr::resources
