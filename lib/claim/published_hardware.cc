// SPDX-License-Identifier: Apache-2.0
#include "claim/published_hardware.h"

#include <tuple>

namespace devmgr::claim {

PublishedHardware::PublishedHardware(HardwareOptions options,
                                     std::string node_name)
    : options_(std::move(options)), node_name_(std::move(node_name)) {}

device::Hardware PublishedHardware::HardwareOf(
    const ResourceSlice& slice, const SliceDevice& device) const {
  // An address of another node, or of none, says nothing here.
  const std::string_view node = slice.per_device_node_selection
                                    ? device.node_name.view()
                                    : std::string_view(slice.node_name);
  const bool is_here =
      node_name_.empty() ? !node.empty() : node == std::string_view(node_name_);
  if (!is_here) return {};
  return device::HardwareOf(device, options_);
}

void PublishedHardware::Add(const ResourceSlice& slice) {
  bool any = false;
  for (std::size_t i = 0; i < slice.devices.size(); ++i) {
    const device::Hardware hardware = HardwareOf(slice, slice.devices[i]);
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      devices_.insert({identity, {&slice, i}});
      any = true;
    }
  }
  if (any) pools_[{slice.driver, slice.pool}].insert(&slice);
}

void PublishedHardware::Remove(const ResourceSlice& slice) {
  const auto pool = pools_.find({slice.driver, slice.pool});
  if (pool == pools_.end() || pool->second.erase(&slice) == 0) return;
  if (pool->second.empty()) pools_.erase(pool);
  for (std::size_t i = 0; i < slice.devices.size(); ++i) {
    const device::Hardware hardware = HardwareOf(slice, slice.devices[i]);
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      devices_.erase({identity, {&slice, i}});
    }
  }
}

void PublishedHardware::Follow(const ObjectMap<ResourceSlice>& slices) {
  if (!options_.one_holder || slices.SharesAllWith(slices_)) return;
  slices.VisitChangesSince(slices_, [this](const auto* was, const auto* is) {
    const auto counts = [this](const ResourceSlice& slice) {
      return !device::IsSharedByIntent(slice.driver, options_);
    };
    if (was != nullptr && counts(*was->second)) Remove(*was->second);
    if (is != nullptr && counts(*is->second)) Add(*is->second);
  });
  slices_ = slices;
  ++version_;
}

device::Hardware PublishedHardware::Find(const state::DeviceKey& key) const {
  const auto& [driver, pool, name] = key;
  const auto found = pools_.find({driver, pool});
  if (found == pools_.end()) return {};
  const ResourceSlice* newest = nullptr;
  const SliceDevice* device = nullptr;
  for (const ResourceSlice* slice : found->second) {
    if (newest != nullptr && slice->pool_generation < newest->pool_generation) {
      continue;
    }
    for (const SliceDevice& each : slice->devices) {
      if (each.name != name) continue;
      newest = slice;
      device = &each;
    }
  }
  return device == nullptr ? device::Hardware() : HardwareOf(*newest, *device);
}

void PublishedHardware::VisitDevicesWith(
    const device::PhysicalIdentity& identity,
    const std::function<void(const state::DeviceKey&, const device::Hardware&)>&
        visit) const {
  for (auto item = devices_.lower_bound({identity, {nullptr, 0}});
       item != devices_.end() && item->first == identity; ++item) {
    const ResourceSlice& slice = *item->second.slice;
    const SliceDevice& device = slice.devices[item->second.device];
    visit({slice.driver, slice.pool, device.name}, HardwareOf(slice, device));
  }
}

void PublishedHardware::VisitDevices(
    const std::function<void(const state::DeviceKey&, const device::Hardware&)>&
        visit) const {
  for (const auto& [pool, slices] : pools_) {
    for (const ResourceSlice* slice : slices) {
      for (const SliceDevice& device : slice->devices) {
        const device::Hardware hardware = HardwareOf(*slice, device);
        if (!hardware.empty()) {
          visit({slice->driver, slice->pool, device.name}, hardware);
        }
      }
    }
  }
}

}  // namespace devmgr::claim
