// SPDX-License-Identifier: Apache-2.0
#include "resources/device_book.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/quote.h"
#include "claim/local_set.h"
#include "common/counted.h"
#include "common/status.h"
#include "device/health_status.h"

namespace devmgr::resources {
namespace {

/// Names whose plugins have gone are remembered up to this; who makes up ever
/// new ones does not fill the memory.
constexpr std::size_t kMostResources = 1'000;

/// Of devices, in an event.
constexpr std::size_t kMostNames = 16;

/// Whether the plugin's answer for the device is recorded, so that a container
/// may have had it.
bool IsCommitted(const std::vector<device::Reservation>& reservations,
                 const ResourceName& resource, const std::string& id) {
  return std::any_of(
      reservations.begin(), reservations.end(), [&](const auto& reservation) {
        return reservation.resource == resource &&
               reservation.phase == device::ReservationPhase::kCommitted &&
               std::any_of(reservation.devices.begin(),
                           reservation.devices.end(),
                           [&](const auto& device) { return device.id == id; });
      });
}

}  // namespace

DeviceBook::DeviceBook(Parts parts) : parts_(std::move(parts)) {
  for (const auto& [uid, pod] : parts_.state.pods) {
    OnPod(uid, pod->name, pod.get());
  }
  AddForeign();
  for (const auto& [uid, pod] : parts_.state.pods) KnowByHolds(*pod);
  for (const auto& [name, resource] : parts_.state.resources) {
    if (resource->backing != state::Backing::kPlugin) continue;
    InventoryOf(name).Restore(/*capacity=*/0, parts_.now_ms());
    ArmGrace(name);
  }
}

DeviceBook::~DeviceBook() {
  for (const auto& [resource, timer] : grace_timers_) {
    parts_.executor.Cancel(timer);
  }
  for (const auto& [resource, timer] : probation_timers_) {
    parts_.executor.Cancel(timer);
  }
}

std::vector<device::FreedDevices> DeviceBook::Refresh(
    const PodUid& uid, const state::PodRecord* pod) {
  std::vector<device::FreedDevices> before = reservations_.ReleasePod(uid);
  if (pod != nullptr) {
    for (device::Reservation& reservation : state::ReservationsOf(*pod)) {
      Add(std::move(reservation));
    }
  }
  if (const auto intended = intended_.find(uid); intended != intended_.end()) {
    for (const device::Reservation& reservation : intended->second) {
      Add(reservation);
    }
  }
  for (const device::FreedDevices& devices : before) {
    AddForeignOf(devices);
    for (const DeviceId& id : devices.ids) {
      JudgeElsewhere({devices.resource, id});
    }
    Mark(devices);
  }
  MarkHeldBy(uid);
  return before;
}

void DeviceBook::Add(device::Reservation reservation) {
  DropForeignOf(reservation);
  // It cannot fail but where an intended one says what the ledger has by now:
  // the ledger holds to the same rules, and the plan was made with this table.
  reservations_.Add(std::move(reservation)).IgnoreError();
}

void DeviceBook::MarkHeldBy(const PodUid& uid) {
  for (const device::Reservation& now : reservations_.OfPod(uid)) {
    device::FreedDevices devices{now.resource, {}};
    for (const auto& device : now.devices) devices.ids.push_back(device.id);
    Mark(devices);
  }
}

void DeviceBook::Mark(const device::FreedDevices& devices) {
  if (!inventories_.contains(devices.resource)) return;
  InventoryOf(devices.resource)
      .UpdateHeld(devices.ids, HeldOf(devices.resource));
}

void DeviceBook::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.pods) {
    const state::PodRecord& pod = now != nullptr ? *now : *before;
    OnPod(pod.uid, pod.name, now.get());
  }
  if (!changes.holders.empty()) OnForeignHolders();
  JudgeElsewhere(changes);
}

void DeviceBook::OnPod(const PodUid& uid, const ObjectName& name,
                       const state::PodRecord* pod) {
  bool less = false;
  const std::vector<device::Reservation> before = reservations_.OfPod(uid);
  for (const auto& freed : Refresh(uid, pod)) {
    less = OnFreed(name, freed, before) || less;
  }
  if (less && pod != nullptr) parts_.on_given_back(name);
}

void DeviceBook::Intend(const claim::PodIdentity& pod,
                        std::vector<device::Reservation> plan) {
  DEVMGR_ASSERT_ON(parts_.executor);
  intended_[pod.uid] = std::move(plan);
  if (pod.local) intended_local_.insert(pod.uid);
  Refresh(pod.uid, parts_.state.FindPod(pod.uid));
}

void DeviceBook::Settle(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  intended_.erase(pod);
  intended_local_.erase(pod);
  for (const auto& devices : Refresh(pod, parts_.state.FindPod(pod))) {
    if (!Unheld(devices).empty()) parts_.on_devices(devices.resource);
  }
}

std::vector<DeviceId> DeviceBook::Unheld(
    const device::FreedDevices& devices) const {
  std::vector<DeviceId> ids = devices.ids;
  std::erase_if(ids, [&](const DeviceId& id) {
    return reservations_.HolderOf(devices.resource, id) != nullptr;
  });
  return ids;
}

bool DeviceBook::OnFreed(const ObjectName& pod,
                         const device::FreedDevices& freed,
                         const std::vector<device::Reservation>& before) {
  std::vector<DeviceId> ids = Unheld(freed);
  if (ids.empty()) return false;
  std::erase_if(ids, [&](const DeviceId& id) {
    return !IsCommitted(before, freed.resource, id);
  });
  if (!ids.empty()) ReportReleased(pod, freed.resource, std::move(ids));
  parts_.on_devices(freed.resource);
  parts_.on_candidates(freed.resource);
  DropForgotten(freed.resource);
  return true;
}

void DeviceBook::ReportReleased(const ObjectName& pod,
                                const ResourceName& resource,
                                std::vector<DeviceId> ids) {
  const std::size_t count = ids.size();
  ids.resize(std::min(count, kMostNames));
  for (DeviceId& id : ids) id = api::Quoted(id);
  parts_.events.Add(
      false, "DevicesReleased", "Pod", pod,
      fmt::format("{} of {} {} free again: {}{}", Counted(count, "device"),
                  resource, count == 1 ? "is" : "are", fmt::join(ids, ", "),
                  count > kMostNames ? ", ..." : ""));
}

void DeviceBook::DropForgotten(const ResourceName& resource) {
  if (inventories_.size() <= kMostResources || !Held(resource).empty() ||
      StateOf(resource) != device::EndpointState::kForgotten) {
    return;
  }
  InventoryOf(resource);
  inventories_.erase(resource);
  parts_.on_forgotten(resource);
}

bool DeviceBook::IsServed(const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (const auto* record = parts_.state.FindResource(resource)) {
    return record->backing == state::Backing::kPlugin;
  }
  return inventories_.contains(resource);
}

device::EndpointState DeviceBook::StateOf(const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto inventory = inventories_.find(resource);
  return inventory != inventories_.end() ? inventory->second.state()
                                         : device::EndpointState::kUnknown;
}

std::optional<device::KeptDevices> DeviceBook::KeptFrom(
    const claim::PodIdentity& pod, const ResourceName& resource) const {
  if (!parts_.local_set) return std::nullopt;
  const std::optional<std::int64_t> local_set = parts_.local_set(resource);
  if (!local_set.has_value()) return std::nullopt;
  return claim::KeptFrom(
      pod.local, Devices(), resource, *local_set, [this](const PodUid& holder) {
        const state::PodRecord* record = parts_.state.FindPod(holder);
        return intended_local_.contains(holder) ||
               (record != nullptr && record->local);
      });
}

void DeviceBook::OnAuthority() {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [resource, inventory] : inventories_) {
    unknown_.insert(resource);
  }
}

claim::WantedDevices DeviceBook::Wanted(
    const claim::PodIdentity& pod, const std::vector<device::DeviceNeed>& needs,
    const std::map<device::NeedKey, std::vector<DeviceId>>& preferences,
    bool trust_held, bool judge_held) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  claim::WantedDevices wanted{pod.uid, needs,      preferences,
                              {},      trust_held, judge_held};
  for (const device::DeviceNeed& need : needs) {
    if (OptionsOf(need.resource).preferred_allocation) {
      wanted.asking.insert(need.resource);
    }
    if (const auto kept = KeptFrom(pod, need.resource)) {
      wanted.kept.insert_or_assign(need.resource, *kept);
    }
  }
  return wanted;
}

plugin::PluginOptions DeviceBook::OptionsOf(
    const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto options =
      options_.find({resource, PrimaryOf(resource).value_or(0)});
  return options != options_.end() ? options->second : plugin::PluginOptions();
}

std::int64_t DeviceBook::FreeCount(const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return claim::FreeDevices(Devices(), resource);
}

std::vector<device::FaultyDevice> DeviceBook::Faulty(
    const ResourceName& resource, bool unknown_is_unhealthy) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto inventory = inventories_.find(resource);
  if (inventory == inventories_.end()) return {};
  if (!unknown_is_unhealthy && inventory->second.held_unhealthy_count() == 0) {
    return {};
  }
  std::vector<device::FaultyDevice> faulty = device::FaultyDevices(
      inventory->second, Held(resource), unknown_is_unhealthy);
  std::erase_if(faulty, [this](const device::FaultyDevice& device) {
    return IsStandIn(device.pod);
  });
  return faulty;
}

device::Inventory& DeviceBook::InventoryOf(const ResourceName& resource) {
  // Before the change, which need not copy what only we have, then.
  known_.erase(resource);
  unknown_.insert(resource);
  const auto [found, fresh] =
      inventories_.try_emplace(resource, parts_.numa_nodes);
  if (fresh && parts_.probation) {
    found->second.SetProbation(parts_.probation(resource));
  }
  return found->second;
}

const view::Resources& DeviceBook::known() const {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const ResourceName& resource : std::exchange(unknown_, {})) {
    const auto found = inventories_.find(resource);
    if (found == inventories_.end()) continue;
    const device::Inventory& inventory = found->second;
    known_.insert_or_assign(
        resource,
        {inventory.state(), inventory.state_since_ms(), inventory.figures(),
         inventory.devices(),
         parts_.local_set ? parts_.local_set(resource) : std::nullopt});
  }
  return known_;
}

std::optional<device::Generation> DeviceBook::PrimaryOf(
    const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto inventory = inventories_.find(resource);
  if (inventory == inventories_.end()) return std::nullopt;
  return inventory->second.primary();
}

void DeviceBook::OnConnected(const ResourceName& resource,
                             plugin::Generation generation,
                             const plugin::PluginOptions& options) {
  DEVMGR_ASSERT_ON(parts_.executor);
  options_[{resource, generation}] = options;
  device::Inventory& inventory = InventoryOf(resource);
  inventory.Connect(generation, parts_.now_ms());
  const std::size_t others = inventory.instances() - 1;
  parts_.events.Add(
      false, "PluginConnected", "Plugin", {"", resource},
      others == 0 ? std::string("a device plugin is connected")
                  : fmt::format("a device plugin is connected, beside {} that "
                                "{} already",
                                others, others == 1 ? "is" : "are"));
  if (parts_.on_connected) parts_.on_connected(resource, options);
  parts_.on_candidates(resource);
}

void DeviceBook::OnList(const ResourceName& resource,
                        plugin::Generation generation,
                        std::vector<device::Device> devices,
                        const plugin::ListProblems& problems) {
  DEVMGR_ASSERT_ON(parts_.executor);
  device::Inventory& inventory = InventoryOf(resource);
  const device::EndpointState before = inventory.state();
  const device::InventoryDelta delta = inventory.Report(
      generation, std::move(devices), HeldOf(resource), parts_.now_ms());
  KnowByList(resource, delta);
  ReportProblems(resource, problems);
  ReportProblems(resource, delta.problems);
  OnDelta(resource, delta);
  // Also a list without devices ends a wait for the first one.
  if (delta.Empty() && inventory.state() != before) parts_.on_plugin(resource);
}

void DeviceBook::ReportProblems(const ResourceName& resource,
                                const device::ListProblems& problems) {
  for (const std::string& text : problems.texts) {
    parts_.events.Add(true, "DeviceListProblem", "Plugin", {"", resource},
                      text);
  }
  if (problems.count <= problems.texts.size()) return;
  parts_.events.Add(true, "DeviceListProblem", "Plugin", {"", resource},
                    fmt::format("{} more problems of the list are not named",
                                problems.count - problems.texts.size()));
}

void DeviceBook::OnDelta(const ResourceName& resource,
                         const device::InventoryDelta& delta) {
  if (delta.Empty()) return;
  if (parts_.on_delta) parts_.on_delta(resource, delta);
  ArmProbation(resource);
  std::set<PodUid> pods =
      device::PodsConcerned(delta, reservations_.Held(resource));
  std::erase_if(pods, [&](const auto& pod) { return IsStandIn(pod); });
  parts_.on_health(pods);
  parts_.on_devices(resource);
}

void DeviceBook::OnGone(const ResourceName& resource,
                        plugin::Generation generation, const std::string& why) {
  DEVMGR_ASSERT_ON(parts_.executor);
  options_.erase({resource, generation});
  const device::InventoryDelta delta = InventoryOf(resource).Disconnect(
      generation, HeldOf(resource), parts_.now_ms());
  if (PrimaryOf(resource).has_value()) {
    parts_.events.Add(
        false, "PluginInstanceGone", "Plugin", {"", resource},
        fmt::format("an instance is gone, and another one serves: {}", why));
  } else {
    parts_.events.Add(true, "PluginGone", "Plugin", {"", resource}, why);
  }
  ArmGrace(resource);
  OnDelta(resource, delta);
  parts_.on_candidates(resource);
}

void DeviceBook::OnState(const plugin::InstanceInfo& info) {
  DEVMGR_ASSERT_ON(parts_.executor);
  // A breaker that may be tried, the end of a quarantine, a new connection.
  parts_.on_plugin(info.resource);
}

void DeviceBook::OnRegistration(const ResourceName& resource) {
  DEVMGR_ASSERT_ON(parts_.executor);
  parts_.metrics.OnRegistration(resource);
}

device::IsHeld DeviceBook::HeldOf(const ResourceName& resource) const {
  return [this, resource](const std::string& id) {
    return reservations_.HolderOf(resource, id) != nullptr;
  };
}

std::vector<DeviceId> DeviceBook::Recheck(const ResourceName& resource,
                                          const DeviceId& id) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!inventories_.contains(resource)) return {};
  std::vector<DeviceId> offered = InventoryOf(resource).Recheck(id);
  ArmProbation(resource);
  if (!offered.empty()) parts_.on_devices(resource);
  return offered;
}

void DeviceBook::ArmProbation(const ResourceName& resource) {
  if (const auto armed = probation_timers_.extract(resource); !armed.empty()) {
    parts_.executor.Cancel(armed.mapped());
  }
  const auto inventory = inventories_.find(resource);
  if (inventory == inventories_.end()) return;
  const auto next = inventory->second.NextEndOfProbation();
  if (!next.has_value()) return;
  // The time of day may be set meanwhile.
  const std::int64_t delay =
      std::clamp<std::int64_t>(*next - parts_.now_ms(), 1, 60'000);
  probation_timers_[resource] = parts_.executor.PostAfter(
      std::chrono::milliseconds(delay), [this, resource] {
        probation_timers_.erase(resource);
        if (!inventories_.contains(resource)) return;
        const bool any = InventoryOf(resource).EndProbation(parts_.now_ms());
        ArmProbation(resource);
        if (any) parts_.on_devices(resource);
      });
}

void DeviceBook::ArmGrace(const ResourceName& resource) {
  const device::Inventory& inventory = inventories_.at(resource);
  const device::EndpointState state = inventory.state();
  if (state != device::EndpointState::kStopped &&
      state != device::EndpointState::kRestored) {
    return;
  }
  if (const auto armed = grace_timers_.find(resource);
      armed != grace_timers_.end()) {
    parts_.executor.Cancel(armed->second);
  }
  grace_timers_[resource] = parts_.executor.PostAfter(
      parts_.grace_period, [this, resource, stop = inventory.stops()] {
        grace_timers_.erase(resource);
        EndGrace(resource, stop);
      });
}

void DeviceBook::EndGrace(const ResourceName& resource, std::uint64_t stop) {
  if (!InventoryOf(resource).EndGrace(stop, HeldOf(resource),
                                      parts_.now_ms())) {
    return;
  }
  parts_.events.Add(true, "PluginNotBack", "Plugin", {"", resource},
                    "it has not come back within the grace period; its devices "
                    "do not count any more");
  parts_.on_devices(resource);
  parts_.on_candidates(resource);
  DropForgotten(resource);
}

}  // namespace devmgr::resources
