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

/// Where it is, or would be.
std::size_t PlaceIn(const InventoryDevices& devices, const DeviceId& id) {
  const auto found =
      std::lower_bound(devices.begin(), devices.end(), id,
                       [](const InventoryDevice& known, std::string_view key) {
                         return IdLess(known.device.id, key);
                       });
  return static_cast<std::size_t>(found - devices.begin());
}

std::vector<Device> Listed(const InventoryDevices& devices) {
  std::vector<Device> listed;
  for (const InventoryDevice& known : devices) {
    if (known.listed) listed.push_back(known.device);
  }
  return listed;
}

}  // namespace

const InventoryDevice* FindDevice(const InventoryDevices& devices,
                                  const DeviceId& id) {
  const std::size_t place = PlaceIn(devices, id);
  return place < devices.size() && devices[place].device.id == id
             ? &devices[place]
             : nullptr;
}

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
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    InventoryDevice& known = devices_.Edit(i);
    known.listed = false;
    held_.Set(i, held(known.device.id));
  }
  DropUnlisted();
  return true;
}

void Inventory::DropUnlisted() {
  std::vector<InventoryDevice> kept;
  std::vector<std::size_t> held;
  std::size_t place = 0;
  for (InventoryDevice& known : devices_.Take()) {
    const bool is_held = held_.Has(place++);
    if (!known.listed && !is_held) {
      probation_.Forget(known.device.id);
      continue;
    }
    if (is_held) held.push_back(kept.size());
    kept.push_back(std::move(known));
  }
  held_.Reset(kept.size());
  devices_ = InventoryDevices(std::move(kept));
  for (const std::size_t one : held) held_.Set(one, true);
  list_order_.clear();  // It names places.
  Count();
}

void Inventory::UpdateHeld(const std::vector<DeviceId>& ids,
                           const IsHeld& held) {
  bool drop = false;
  for (const DeviceId& id : ids) {
    const std::optional<std::size_t> place = PlaceOf(id);
    if (!place.has_value()) continue;
    held_.Set(*place, held(id));
    MarkPlace(*place);
    drop = drop || (!held_.Has(*place) && !devices()[*place].listed);
  }
  if (drop) DropUnlisted();
}

std::optional<std::size_t> Inventory::PlaceOf(const DeviceId& id) const {
  const std::size_t place = PlaceIn(devices(), id);
  if (place == devices().size() || devices()[place].device.id != id) {
    return std::nullopt;
  }
  return place;
}

void Inventory::MarkPlace(std::size_t place) {
  const InventoryDevice& known = devices()[place];
  const bool held = held_.Has(place);
  free_.Set(place, known.Usable() && !held);
  held_unhealthy_.Set(place, held && known.device.health == Health::kUnhealthy);
}

const InventoryDevice* Inventory::Find(const DeviceId& id) const {
  return FindDevice(devices(), id);
}

bool Inventory::HasHolder(const DeviceId& id) const {
  const std::optional<std::size_t> place = PlaceOf(id);
  return place.has_value() && held_.Has(*place);
}

Health Inventory::HealthOf(const DeviceId& id) const {
  const InventoryDevice* known = Find(id);
  return known == nullptr ? Health::kUnknown : known->device.health;
}

void Inventory::MakePrimary(Generation instance) {
  if (primary_ == instance) return;
  if (primary_.has_value()) {
    instances_.at(*primary_).standby = Listed(devices());
  }
  primary_ = instance;
}

bool Inventory::ListsTheSame(const std::vector<Device>& list) const {
  if (list_order_.size() != list.size()) return false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (devices()[list_order_[i]].device.id != list[i].id) return false;
  }
  return true;
}

InventoryDelta Inventory::Apply(std::vector<Device> list, const IsHeld& held,
                                std::int64_t now_ms) {
  InventoryDelta delta;
  if (ListsTheSame(list)) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      CheckNodes(list[i], machine_nodes_, delta.problems);
      const std::size_t place = list_order_[i];
      if (IsTheSame(devices()[place], list[i])) continue;
      Update(devices_.Edit(place), std::move(list[i]), now_ms, delta);
    }
    SortById(delta);
  } else {
    CheckedList checked = CheckList(std::move(list), machine_nodes_);
    delta.problems = std::move(checked.problems);
    const std::size_t size = checked.devices.size();
    Merge(std::move(checked.devices), held, now_ms, delta);
    list_order_ = std::move(checked.places);
    if (devices().size() != size) list_order_.clear();
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
  std::vector<InventoryDevice> before = devices_.Take();
  auto known = before.begin();
  const auto keep_if_held = [&] {
    if (known->listed) delta.vanished.push_back(known->device.id);
    if (held(known->device.id)) {
      known->listed = false;
      SetHealth(*known, Health::kUnknown, HealthReason::kNotListed, now_ms);
      NoteHealth(*known, now_ms);
      merged.push_back(std::move(*known));
    } else {
      probation_.Forget(known->device.id);
    }
    ++known;
  };
  for (Device& device : sorted) {
    while (known != before.end() && known->device.id != device.id &&
           IdLess(known->device.id, device.id)) {
      keep_if_held();
    }
    if (known != before.end() && known->device.id == device.id) {
      Update(*known, std::move(device), now_ms, delta);
      merged.push_back(std::move(*known++));
    } else {
      delta.added.push_back(device.id);
      merged.push_back({.device = std::move(device), .since_ms = now_ms});
      NoteHealth(merged.back(), now_ms);
    }
  }
  while (known != before.end()) keep_if_held();
  devices_ = InventoryDevices(std::move(merged));
  held_.Reset(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    held_.Set(i, held(devices_[i].device.id));
  }
}

bool Inventory::IsTheSame(const InventoryDevice& known, const Device& device) {
  return known.listed && known.reason == HealthReason::kReported &&
         known.device.health == device.health &&
         known.device.numa_nodes == device.numa_nodes;
}

void Inventory::Update(InventoryDevice& known, Device device,
                       std::int64_t now_ms, InventoryDelta& delta) {
  known.listed = true;
  if (known.device.health != device.health) {
    delta.changed.push_back({device.id, known.device.health, device.health});
  }
  SetHealth(known, device.health, HealthReason::kReported, now_ms);
  NoteHealth(known, now_ms);
  if (known.device.numa_nodes != device.numa_nodes) {
    known.device.numa_nodes = std::move(device.numa_nodes);
    delta.moved.push_back(known.device.id);
  }
}

void Inventory::LosePlugin(std::int64_t now_ms, InventoryDelta& delta) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i].listed) continue;
    InventoryDevice& known = devices_.Edit(i);
    if (known.device.health != Health::kUnknown) {
      delta.changed.push_back(
          {known.device.id, known.device.health, Health::kUnknown});
    }
    SetHealth(known, Health::kUnknown, HealthReason::kPluginGone, now_ms);
    NoteHealth(known, now_ms);
  }
  Move(EndpointEvent::kLastReporterGone, now_ms);
}

void Inventory::NoteHealth(InventoryDevice& known, std::int64_t now_ms) {
  probation_.Note(known.device.id, known.device.health, now_ms);
  known.withheld = probation_.Withholds(known.device.id);
}

void Inventory::Offer(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const std::optional<std::size_t> place = PlaceOf(id);
    if (place.has_value()) devices_.Edit(*place).withheld = false;
  }
  if (!ids.empty()) Count();
}

bool Inventory::EndProbation(std::int64_t now_ms) {
  const std::vector<std::string> ended = probation_.End(now_ms);
  Offer(ended);
  return !ended.empty();
}

std::vector<DeviceId> Inventory::Recheck(const DeviceId& id) {
  const std::vector<std::string> ended = probation_.Recheck(id);
  Offer(ended);
  return {ended.begin(), ended.end()};
}

void Inventory::Count() {
  figures_ = {restored_capacity_, 0};
  free_.Reset(devices().size());
  held_unhealthy_.Reset(devices().size());
  for (std::size_t i = 0; i < devices().size(); ++i) {
    if (devices()[i].listed) ++figures_.capacity;
    if (devices()[i].Usable()) ++figures_.allocatable;
    MarkPlace(i);
  }
}

}  // namespace devmgr::device
