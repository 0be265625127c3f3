// SPDX-License-Identifier: Apache-2.0
#include "device/inventory.h"

#include <algorithm>
#include <cstddef>

#include "common/enum_names.h"
#include "device/id_order.h"

namespace devmgr::device {
namespace {

void SetHealth(InventoryDevice& known, Health health, HealthReason reason,
               std::int64_t now_ms) {
  if (known.device.health == health && known.reason == reason) return;
  known.device.health = health;
  known.reason = reason;
  known.since_ms = now_ms;
}

void SortById(InventoryDelta& delta) {
  std::sort(delta.changed.begin(), delta.changed.end(),
            [](const auto& a, const auto& b) { return IdLess(a.id, b.id); });
  std::sort(delta.moved.begin(), delta.moved.end(), IdLess);
}

std::vector<Device> Listed(const std::vector<InventoryDevice>& devices) {
  std::vector<Device> listed;
  for (const InventoryDevice& known : devices) {
    if (known.listed) listed.push_back(known.device);
  }
  return listed;
}

}  // namespace

std::string_view HealthReasonText(HealthReason reason) {
  using enum HealthReason;
  static constexpr auto kTexts = EnumTable<HealthReason>({
      {kReported, "reported by the plugin"},
      {kPluginGone, "the plugin is gone"},
      {kNotListed, "the plugin does not list it"},
  });
  return kTexts.Of(reason);
}

void Inventory::Move(EndpointEvent event, std::int64_t now_ms) {
  const EndpointState next = Next(state_, event);
  if (next == state_) return;
  state_ = next;
  state_since_ms_ = now_ms;
  if (state_ == EndpointState::kStopped || state_ == EndpointState::kRestored) {
    ++stops_;
  }
  Count();
}

void Inventory::Restore(std::int64_t capacity, std::int64_t now_ms) {
  if (state_ == EndpointState::kUnknown) restored_capacity_ = capacity;
  Move(EndpointEvent::kRestore, now_ms);
}

void Inventory::Connect(Generation instance, std::int64_t now_ms) {
  instances_.try_emplace(instance);
  Move(EndpointEvent::kConnect, now_ms);
}

InventoryDelta Inventory::Report(Generation instance, std::vector<Device> list,
                                 const IsHeld& held, std::int64_t now_ms) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return {};
  found->second.reported = true;
  if (primary_.has_value() && *primary_ > instance) {
    InventoryDelta nothing;
    CheckedList checked = CheckList(std::move(list), machine_nodes_);
    nothing.problems = std::move(checked.problems);
    found->second.standby = std::move(checked.devices);
    return nothing;
  }
  MakePrimary(instance);
  return Apply(std::move(list), held, now_ms);
}

InventoryDelta Inventory::Disconnect(Generation instance, const IsHeld& held,
                                     std::int64_t now_ms) {
  InventoryDelta delta;
  if (instances_.erase(instance) == 0) return delta;
  if (primary_ == instance) {
    primary_.reset();
    const auto next =
        std::find_if(instances_.rbegin(), instances_.rend(),
                     [](const auto& entry) { return entry.second.reported; });
    if (next != instances_.rend()) {
      std::vector<Device> list = std::move(next->second.standby);
      MakePrimary(next->first);
      return Apply(std::move(list), held, now_ms);
    }
    LosePlugin(now_ms, delta);
  }
  if (instances_.empty()) Move(EndpointEvent::kLastInstanceGone, now_ms);
  return delta;
}

bool Inventory::EndGrace(std::uint64_t stop, const IsHeld& held,
                         std::int64_t now_ms) {
  if (stop != stops_) return false;
  const EndpointState before = state_;
  Move(EndpointEvent::kGraceOver, now_ms);
  if (state_ == before) return false;
  restored_capacity_ = 0;
  for (InventoryDevice& known : devices_) {
    known.listed = false;
    known.held = held(known.device.id);
  }
  DropUnlisted();
  return true;
}

void Inventory::DropUnlisted() {
  std::erase_if(devices_, [](const InventoryDevice& known) {
    return !known.listed && !known.held;
  });
  list_order_.clear();  // It names places.
  Count();
}

void Inventory::UpdateHeld(const std::vector<std::string>& ids,
                           const IsHeld& held) {
  bool drop = false;
  for (const std::string& id : ids) {
    const std::size_t place = PlaceOf(id);
    if (place == devices_.size() || devices_[place].device.id != id) continue;
    InventoryDevice& known = devices_[place];
    known.held = held(id);
    MarkPlace(place);
    drop = drop || (!known.held && !known.listed);
  }
  if (drop) DropUnlisted();
}

std::size_t Inventory::PlaceOf(std::string_view id) const {
  const auto found =
      std::lower_bound(devices_.begin(), devices_.end(), id,
                       [](const InventoryDevice& known, std::string_view key) {
                         return IdLess(known.device.id, key);
                       });
  return static_cast<std::size_t>(found - devices_.begin());
}

void Inventory::MarkPlace(std::size_t place) {
  const InventoryDevice& known = devices_[place];
  free_.Set(place, known.Usable() && !known.held);
  held_unhealthy_.Set(place,
                      known.held && known.device.health == Health::kUnhealthy);
}

const InventoryDevice* Inventory::Find(std::string_view id) const {
  const std::size_t place = PlaceOf(id);
  return place < devices_.size() && devices_[place].device.id == id
             ? &devices_[place]
             : nullptr;
}

Health Inventory::HealthOf(std::string_view id) const {
  const InventoryDevice* known = Find(id);
  return known == nullptr ? Health::kUnknown : known->device.health;
}

void Inventory::MakePrimary(Generation instance) {
  if (primary_ == instance) return;
  if (primary_.has_value()) {
    instances_.at(*primary_).standby = Listed(devices_);
  }
  primary_ = instance;
}

bool Inventory::ListsTheSame(const std::vector<Device>& list) const {
  if (list_order_.size() != list.size()) return false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (devices_[list_order_[i]].device.id != list[i].id) return false;
  }
  return true;
}

InventoryDelta Inventory::Apply(std::vector<Device> list, const IsHeld& held,
                                std::int64_t now_ms) {
  InventoryDelta delta;
  if (ListsTheSame(list)) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      CheckNodes(list[i], machine_nodes_, delta.problems);
      Update(devices_[list_order_[i]], std::move(list[i]), now_ms, delta);
    }
    SortById(delta);
  } else {
    CheckedList checked = CheckList(std::move(list), machine_nodes_);
    delta.problems = std::move(checked.problems);
    const std::size_t size = checked.devices.size();
    Merge(std::move(checked.devices), held, now_ms, delta);
    list_order_ = std::move(checked.places);
    if (devices_.size() != size) list_order_.clear();
  }
  restored_capacity_ = 0;
  Move(EndpointEvent::kReport, now_ms);
  Count();
  return delta;
}

void Inventory::Merge(std::vector<Device> sorted, const IsHeld& held,
                      std::int64_t now_ms, InventoryDelta& delta) {
  std::vector<InventoryDevice> merged;
  merged.reserve(sorted.size());
  auto known = devices_.begin();
  const auto keep_if_held = [&] {
    if (known->listed) delta.vanished.push_back(known->device.id);
    if (held(known->device.id)) {
      known->listed = false;
      SetHealth(*known, Health::kUnknown, HealthReason::kNotListed, now_ms);
      merged.push_back(std::move(*known));
    }
    ++known;
  };
  for (Device& device : sorted) {
    while (known != devices_.end() && known->device.id != device.id &&
           IdLess(known->device.id, device.id)) {
      keep_if_held();
    }
    if (known != devices_.end() && known->device.id == device.id) {
      Update(*known, std::move(device), now_ms, delta);
      merged.push_back(std::move(*known++));
    } else {
      delta.added.push_back(device.id);
      merged.push_back({.device = std::move(device), .since_ms = now_ms});
    }
  }
  while (known != devices_.end()) keep_if_held();
  devices_ = std::move(merged);
  for (InventoryDevice& device : devices_) {
    device.held = held(device.device.id);
  }
}

void Inventory::Update(InventoryDevice& known, Device device,
                       std::int64_t now_ms, InventoryDelta& delta) {
  known.listed = true;
  if (known.device.health != device.health) {
    delta.changed.push_back({device.id, known.device.health, device.health});
  }
  SetHealth(known, device.health, HealthReason::kReported, now_ms);
  if (known.device.numa_nodes != device.numa_nodes) {
    known.device.numa_nodes = std::move(device.numa_nodes);
    delta.moved.push_back(known.device.id);
  }
}

void Inventory::LosePlugin(std::int64_t now_ms, InventoryDelta& delta) {
  for (InventoryDevice& known : devices_) {
    if (!known.listed) continue;
    if (known.device.health != Health::kUnknown) {
      delta.changed.push_back(
          {known.device.id, known.device.health, Health::kUnknown});
    }
    SetHealth(known, Health::kUnknown, HealthReason::kPluginGone, now_ms);
  }
  Move(EndpointEvent::kLastReporterGone, now_ms);
}

void Inventory::Count() {
  figures_ = {restored_capacity_, 0};
  free_.Reset(devices_.size());
  held_unhealthy_.Reset(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].listed) ++figures_.capacity;
    if (devices_[i].Usable()) ++figures_.allocatable;
    MarkPlace(i);
  }
}

std::map<std::string, std::vector<Device>> AllocatableDevices(
    const InventoryMap& inventories) {
  std::map<std::string, std::vector<Device>> allocatable;
  for (const auto& [resource, inventory] : inventories) {
    for (const InventoryDevice& known : inventory.devices()) {
      if (known.Usable()) allocatable[resource].push_back(known.device);
    }
  }
  return allocatable;
}

}  // namespace devmgr::device
