// SPDX-License-Identifier: Apache-2.0
//
// What classes and slices add to devices and resources.
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "claim/container_answer.h"
#include "claim/device_class.h"
#include "view/device_views.h"

namespace devmgr::view {
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

/// The devices that pods hold for a name through claims.
std::set<state::DeviceKey> HeldByClaims(const state::State& state,
                                        const ResourceName& resource,
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

}  // namespace

std::vector<DeviceClassInfo> DeviceClassesOf(const ObjectSnapshot& objects) {
  const auto owners = claim::ClassesByResource(objects.device_classes);
  std::vector<DeviceClassInfo> classes;
  for (const auto& [name, item] : objects.device_classes) {
    const auto owner = owners.find(item->extended_resource_name);
    classes.push_back(
        InfoOf(*item, owner != owners.end() ? owner->second : nullptr));
  }
  return classes;
}

std::string_view NodeOf(const ResourceSlice& slice, const SliceDevice& device) {
  return slice.per_device_node_selection ? device.node_name.view()
                                         : std::string_view(slice.node_name);
}

void AddPublished(const ObjectSnapshot& objects, const std::string& node_name,
                  std::vector<DeviceInfo>* devices) {
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const DeviceInfo& device : *devices) {
    known.insert({device.driver, device.pool, device.device});
  }
  for (const auto& [name, slice] : objects.resource_slices) {
    for (const SliceDevice& device : slice->devices) {
      const bool on_all = slice->per_device_node_selection ? device.all_nodes
                                                           : slice->all_nodes;
      if (!node_name.empty() && !on_all &&
          NodeOf(*slice, device) != node_name) {
        continue;
      }
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

void AddClasses(const ObjectSnapshot& objects, const state::State& state,
                std::vector<ResourceInfo>* resources) {
  std::map<ResourceName, ResourceInfo> all;
  for (ResourceInfo& info : *resources) {
    ResourceName name = info.name;
    all[std::move(name)] = std::move(info);
  }
  std::map<ResourceName, std::set<std::string>> drivers;
  const auto add = [&](const ResourceName& name, const DeviceClass& item) {
    ResourceInfo& info = all[name];
    info.name = name;
    info.device_class = item.metadata.name;
    if (!info.owner.has_value()) info.owner = ResourceOwner::kDeviceClass;
    for (std::string& driver : claim::DriversNamedBy(item)) {
      drivers[name].insert(std::move(driver));
    }
  };
  for (const auto& [name, item] :
       claim::ClassesByResource(objects.device_classes)) {
    add(name, *item);
  }
  std::set<ResourceName> held;
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
    if (!info.owner.has_value()) info.owner = ResourceOwner::kDeviceClass;
    const std::set<std::string>& names = drivers[name];
    info.drivers.assign(names.begin(), names.end());
    resources->push_back(std::move(info));
  }
}

}  // namespace devmgr::view
