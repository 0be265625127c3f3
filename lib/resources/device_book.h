// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/metrics.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/backing.h"
#include "claim/device_booking.h"
#include "claim/device_plan.h"
#include "claim/held_hardware.h"
#include "common/executor.h"
#include "device/hardware.h"
#include "device/health_policy.h"
#include "device/inventory.h"
#include "device/pod_plan.h"
#include "device/reservation.h"
#include "device/reservation_table.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "plugin/plugins.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::resources {

/// What the manager knows of the devices of plugins: what there is, as the
/// plugins list them, and which pods hold them, as the ledger has it. Lives on
/// the manager's thread.
class DeviceBook final : public plugin::PluginListener {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    MetricsSink& metrics;
    /// NUMA nodes of the machine, ascending; empty: not known.
    std::vector<std::int64_t> numa_nodes;
    std::function<std::int64_t()> now_ms;
    /// How long the devices of a plugin that is gone count in the capacity.
    std::chrono::milliseconds grace_period{std::chrono::minutes(5)};
    /// A list, or the end of a plugin, has changed its devices; may be null.
    std::function<void(const ResourceName& resource,
                       const device::InventoryDelta& delta)>
        on_delta = {};
    /// Devices of a resource came, went, were freed or changed their health.
    std::function<void(const ResourceName& resource)> on_devices;
    /// A plugin has connected, which says this of itself; may be null.
    std::function<void(const ResourceName& resource,
                       const plugin::PluginOptions& options)>
        on_connected = {};
    /// Its plugin may serve otherwise than before.
    std::function<void(const ResourceName& resource)> on_plugin;
    /// Its plugin came or has gone for good, or somebody holds less of it.
    std::function<void(const ResourceName& resource)> on_candidates;
    /// So many names are known that this one, which is neither served nor held,
    /// is not remembered.
    std::function<void(const ResourceName& resource)> on_forgotten;
    /// The health of devices that these pods hold is another.
    std::function<void(const std::set<PodUid>& pods)> on_health;
    /// This pod, which goes on, holds less than before.
    std::function<void(const ObjectName& pod)> on_given_back;
    /// How long its devices have to work before pods get them; null: at once.
    std::function<device::Probation::Rules(const ResourceName& resource)>
        probation = {};
    /// Under Authority::kSplit how many devices of it are for pods of this
    /// node; nothing, or null: pods are of one kind.
    std::function<std::optional<std::int64_t>(const ResourceName& resource)>
        local_set = {};
    /// Of a name by a plugin and by claims.
    claim::Sharing sharing = claim::Sharing::kOneOwner;
    HardwareOptions hardware = {};
  };
  /// Begins with what the ledger holds.
  explicit DeviceBook(Parts parts);
  ~DeviceBook() override;

  /// What pods and foreign holders hold now.
  void OnCommitted(const ledger::Changes& changes);
  /// The container that `uid` stands for; nothing if it is a pod.
  std::optional<std::string> ForeignName(const PodUid& uid) const;
  /// Whether `uid` stands for a pod that has a device's hardware by another
  /// driver or device plugin.
  bool IsElsewhere(const PodUid& uid) const { return elsewhere_.contains(uid); }

  /// Which hardware devices of plugins are; those of which nothing is known are
  /// missing.
  const claim::PluginHardware& hardware() const { return hardware_; }
  /// Which hardware the device is, as far as it is known.
  device::Hardware HardwareOf(const ResourceName& resource,
                              const DeviceId& id) const;
  /// The same, of these devices.
  claim::HardwareByNeed HardwareOf(
      const std::vector<device::Reservation>& plan) const;
  /// An answer for these devices turned out to be this hardware.
  void Learn(const ResourceName& resource, const std::vector<DeviceId>& ids,
             const device::Hardware& hardware);
  /// Whether the plan takes only what the pod's own containers have already,
  /// unknown to the ledger.
  bool IsAdoption(const std::vector<device::Reservation>& plan) const;

  /// These count as held from now on, though the ledger does not know of them
  /// yet; until Settle, once for each.
  void Intend(const claim::PodIdentity& pod,
              std::vector<device::Reservation> plan);
  /// The ledger has taken them, or has not: only it counts now.
  void Settle(const PodUid& pod);

  /// Does a device plugin serve this name, now or by what the ledger knows?
  bool IsServed(const ResourceName& resource) const;

  device::EndpointState StateOf(const ResourceName& resource) const;

  /// What a plan of a pod's devices is made of; `preferences` are the plugins'
  /// answers so far. Valid until the next change.
  claim::PluginDevices Devices() const {
    return {parts_.state, inventories_, reservations_, parts_.sharing};
  }
  claim::WantedDevices Wanted(
      const claim::PodIdentity& pod,
      const std::vector<device::DeviceNeed>& needs,
      const std::map<device::NeedKey, std::vector<DeviceId>>& preferences,
      bool trust_held, bool judge_held) const;

  /// Which party allocates is another: `local_set` may be, too.
  void OnAuthority();

  /// Healthy devices that are not held; none while claims are held for the
  /// name.
  std::int64_t FreeCount(const ResourceName& resource) const;

  /// The connection to ask about a resource; nothing while no plugin has listed
  /// its devices.
  std::optional<device::Generation> PrimaryOf(
      const ResourceName& resource) const;

  /// Of the one to ask.
  plugin::PluginOptions OptionsOf(const ResourceName& resource) const;

  /// What can be seen of the resources. Valid until the next change.
  const view::Resources& known() const;

  /// Devices of a resource that are held and called Unhealthy.
  std::vector<device::FaultyDevice> Faulty(
      const ResourceName& resource, bool unknown_is_unhealthy = false) const;

  /// Devices that work may be had from now on, though they have not worked for
  /// long enough; `id` empty: all of the resource. Gives those that could not.
  std::vector<DeviceId> Recheck(const ResourceName& resource,
                                const DeviceId& id);

  const device::InventoryMap& inventories() const { return inventories_; }
  /// What counts as held, and the ledger does not know of yet.
  const std::map<PodUid, std::vector<device::Reservation>>& intended() const {
    return intended_;
  }
  const device::ReservationTable::HeldIds& Held(
      const ResourceName& resource) const {
    return reservations_.Held(resource);
  }

  void OnConnected(const ResourceName& resource, plugin::Generation generation,
                   const plugin::PluginOptions& options) override;
  void OnList(const ResourceName& resource, plugin::Generation generation,
              std::vector<device::Device> devices,
              const plugin::ListProblems& problems) override;
  void OnGone(const ResourceName& resource, plugin::Generation generation,
              const std::string& why) override;
  void OnState(const plugin::InstanceInfo& info) override;
  void OnRegistration(const ResourceName& resource) override;

 private:
  /// A pod's record changed, or is gone (null).
  void OnPod(const PodUid& uid, const ObjectName& name,
             const state::PodRecord* pod);
  /// Other containers that the ledger has no pod for hold devices, or hold them
  /// no more.
  void OnForeignHolders();
  /// Puts what the pod holds into the table. Gives what it held before.
  std::vector<device::FreedDevices> Refresh(const PodUid& uid,
                                            const state::PodRecord* pod);
  /// Updates in the inventory which of these are held.
  void Mark(const device::FreedDevices& devices);
  void MarkHeldBy(const PodUid& uid);
  /// Puts what a pod has into the table; takes it away from foreign holders,
  /// which have what no pod has.
  void Add(device::Reservation reservation);
  /// Foreign holders, all of them, out of the table and into it.
  std::vector<device::FreedDevices> DropForeign();
  void AddForeign();
  /// One device, if it is free.
  void AddForeign(const ResourceName& resource, const DeviceId& device,
                  const state::ContainerId& id);
  /// Those that have these devices, as far as they are free.
  void AddForeignOf(const device::FreedDevices& devices);
  void DropForeignOf(const device::Reservation& wanted);
  /// What of the free devices is not for this pod.
  std::optional<device::KeptDevices> KeptFrom(
      const claim::PodIdentity& pod, const ResourceName& resource) const;
  /// Of devices, those that are not held.
  std::vector<DeviceId> Unheld(const device::FreedDevices& devices) const;
  /// A device of a plugin.
  using DeviceName = std::pair<ResourceName, DeviceId>;
  /// Keeps which hardware the device is; empty: not known any more.
  void Know(const DeviceName& device, const device::Hardware& hardware);
  /// What a list says of it by the IDs alone.
  void KnowByList(const ResourceName& resource,
                  const device::InventoryDelta& delta);
  /// Of answers for one device.
  void KnowByHolds(const state::PodRecord& pod);
  /// Another driver or device plugin gave its hardware to a pod, or does not
  /// any more: then it stands in the table as that of a pod of its own.
  void JudgeElsewhere(const DeviceName& device);
  void JudgeElsewhere(const ledger::Changes& changes);
  /// `uid` stands for something that is no pod.
  bool IsStandIn(const PodUid& uid) const {
    return foreign_.contains(uid) || elsewhere_.contains(uid);
  }
  /// To be changed.
  device::Inventory& InventoryOf(const ResourceName& resource);
  /// Devices that are held no longer, of those that the pod let go; what it
  /// had `before`, reserved or committed. False: there are none.
  bool OnFreed(const ObjectName& pod, const device::FreedDevices& freed,
               const std::vector<device::Reservation>& before);
  /// As an event; only of devices that the pod was given.
  void ReportReleased(const ObjectName& pod, const ResourceName& resource,
                      std::vector<DeviceId> ids);
  device::IsHeld HeldOf(const ResourceName& resource) const;
  /// What is wrong with a list.
  void ReportProblems(const ResourceName& resource,
                      const device::ListProblems& problems);
  /// What a list, or the end of a plugin, changed.
  void OnDelta(const ResourceName& resource,
               const device::InventoryDelta& delta);
  void ArmGrace(const ResourceName& resource);
  void ArmProbation(const ResourceName& resource);
  void EndGrace(const ResourceName& resource, std::uint64_t stop);
  /// If there are too many of its kind.
  void DropForgotten(const ResourceName& resource);

  const Parts parts_;
  device::InventoryMap inventories_;
  mutable view::Resources known_;           ///< But for those that changed.
  mutable std::set<ResourceName> unknown_;  ///< Those.
  device::ReservationTable reservations_;
  /// By resource and connection.
  std::map<std::pair<ResourceName, plugin::Generation>, plugin::PluginOptions>
      options_;
  std::map<PodUid, std::vector<device::Reservation>> intended_;
  std::set<PodUid> intended_local_;  ///< Those of PodIdentity::local.
  /// Containers that stand in `reservations_` as pods of their own.
  std::map<PodUid, state::ContainerId> foreign_;
  /// Of devices of which it is known.
  claim::PluginHardware hardware_;
  std::set<std::pair<device::PhysicalIdentity, DeviceName>> by_hardware_;
  /// What stands in `reservations_` for pods elsewhere, by UID.
  std::map<PodUid, claim::HeldHardware> elsewhere_;
  std::map<ResourceName, std::uint64_t> grace_timers_;
  std::map<ResourceName, TimerId> probation_timers_;
};

}  // namespace devmgr::resources
