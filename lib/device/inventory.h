// SPDX-License-Identifier: Apache-2.0
//
// The devices of one resource, as its plugin tells them. Several instances of
// the plugin may be connected, as in a rolling upgrade: the newest that has
// reported its devices is the one that counts and that allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/shared_vector.h"
#include "device/device.h"
#include "device/device_list.h"
#include "device/endpoint_machine.h"
#include "device/place_set.h"
#include "device/probation.h"

namespace devmgr::device {

/// Number of a plugin's connection: larger for later ones, never used twice.
using Generation = std::uint64_t;

/// Why a device has the health it has.
enum class HealthReason : std::uint8_t {
  kReported,    ///< The plugin said so.
  kPluginGone,  ///< No instance is left that has reported its devices.
  kNotListed,   ///< The plugin tells of others, not of this one.
};
/// For people.
std::string_view HealthReasonText(HealthReason reason);

struct InventoryDevice {
  Device device;
  HealthReason reason = HealthReason::kReported;
  std::int64_t since_ms = 0;  ///< Unix time of this health and reason.
  bool listed = true;         ///< False: only here because a pod holds it.
  /// It did not work, and has not worked for long enough since (Probation).
  bool withheld = false;

  /// May be given to a container.
  bool Usable() const {
    return listed && !withheld && device.health == Health::kHealthy;
  }
  friend bool operator==(const InventoryDevice&,
                         const InventoryDevice&) = default;
};

/// In natural order of IDs.
using InventoryDevices = SharedVector<InventoryDevice>;

/// What an event changed. IDs are in natural order.
struct InventoryDelta {
  struct HealthChange {
    DeviceId id;
    Health before = Health::kUnknown;
    Health after = Health::kUnknown;
    friend bool operator==(const HealthChange&, const HealthChange&) = default;
  };
  std::vector<DeviceId> added;
  std::vector<DeviceId> vanished;     ///< Not listed any more.
  std::vector<HealthChange> changed;  ///< Vanished ones are not among these.
  std::vector<DeviceId> moved;        ///< To other NUMA nodes.
  /// Of the list that came.
  ListProblems problems;

  /// The devices are as they were.
  bool Empty() const {
    return added.empty() && vanished.empty() && changed.empty() &&
           moved.empty();
  }
};

/// Of the node status: what exists, and what of it works. Being held by a pod
/// changes neither.
struct Figures {
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  friend bool operator==(const Figures&, const Figures&) = default;
};

/// Does a pod hold this device? Such a device stays known, as kUnknown, when
/// the plugin does not list it any more.
using IsHeld = std::function<bool(const DeviceId& id)>;

/// Thread-bound. The cost of a list is linear in its length, and of the rest in
/// what there is to change: pods come and go without a look at the devices of
/// others. Memory is that of two lists at most per instance.
class Inventory {
 public:
  /// `machine_nodes`: NUMA nodes that exist, ascending; empty: not known.
  explicit Inventory(std::vector<std::int64_t> machine_nodes = {})
      : machine_nodes_(std::move(machine_nodes)) {}

  /// The ledger names the resource at start. `capacity` is what is shown until
  /// a plugin is back: the last known one, or 0 as the kubelet does.
  void Restore(std::int64_t capacity, std::int64_t now_ms);

  /// How long a device that did not work has to before it is Usable. To be
  /// called before the first list.
  void SetProbation(Probation::Rules rules) { probation_ = Probation(rules); }
  /// Devices that have worked for long enough are Usable. False: there are
  /// none.
  bool EndProbation(std::int64_t now_ms);
  /// Devices that are not Usable because they did not work.
  const Probation& probation() const { return probation_; }
  /// When the next of them has; nothing: none works.
  std::optional<std::int64_t> NextEndOfProbation() const {
    return probation_.NextEnd();
  }
  /// Devices that work are Usable from now on; `id` empty: all. Gives those
  /// that were not.
  std::vector<DeviceId> Recheck(const DeviceId& id);

  void Connect(Generation instance, std::int64_t now_ms);

  /// A complete list of an instance. Of one that is not connected (any more),
  /// or that is older than the one that counts, it changes nothing yet.
  InventoryDelta Report(Generation instance, std::vector<Device> list,
                        const IsHeld& held, std::int64_t now_ms);

  /// The instance ended. The next newest that has reported its devices takes
  /// over; without one all devices are kUnknown. Nothing for an unknown
  /// instance.
  InventoryDelta Disconnect(Generation instance, const IsHeld& held,
                            std::int64_t now_ms);

  /// The grace period that began with the stop of this number (stops()) is
  /// over. False when that comes too late to mean anything.
  bool EndGrace(std::uint64_t stop, const IsHeld& held, std::int64_t now_ms);

  /// Pods took or gave back some of these. Forgets those that are neither
  /// listed nor held.
  void UpdateHeld(const std::vector<DeviceId>& ids, const IsHeld& held);

  EndpointState state() const { return state_; }
  std::int64_t state_since_ms() const { return state_since_ms_; }
  /// How often a grace period has begun.
  std::uint64_t stops() const { return stops_; }
  std::size_t instances() const { return instances_.size(); }
  /// The instance to call for allocations; empty unless the state is kLive.
  std::optional<Generation> primary() const { return primary_; }
  const Figures& figures() const { return figures_; }

  /// In natural order of IDs, those that are not listed too.
  /// A copy shares what later changes do not touch.
  const InventoryDevices& devices() const { return devices_; }
  /// By a pod, as of the last UpdateHeld. False for devices that there are not.
  bool HasHolder(const DeviceId& id) const;
  /// Where it is in `devices`; nothing when there is none.
  std::optional<std::size_t> PlaceOf(const DeviceId& id) const;
  /// Null when there is none. Valid until the next change.
  const InventoryDevice* Find(const DeviceId& id) const;
  /// kUnknown for devices that there are not.
  Health HealthOf(const DeviceId& id) const;

  /// How many devices work and are not held.
  std::int64_t free_count() const { return free_.count(); }
  /// Calls `visit` with the place of each of them in `devices`, in natural
  /// order, until it returns false.
  template <typename Visit>
  void VisitFree(Visit visit) const {
    free_.VisitAll(visit);
  }
  /// How many devices are held and called kUnhealthy.
  std::int64_t held_unhealthy_count() const { return held_unhealthy_.count(); }

 private:
  struct Instance {
    bool reported = false;
    /// While another instance is the primary.
    std::vector<Device> standby;
  };

  void Move(EndpointEvent event, std::int64_t now_ms);
  void MakePrimary(Generation instance);
  InventoryDelta Apply(std::vector<Device> list, const IsHeld& held,
                       std::int64_t now_ms);
  bool ListsTheSame(const std::vector<Device>& list) const;
  void Merge(std::vector<Device> sorted, const IsHeld& held,
             std::int64_t now_ms, InventoryDelta& delta);
  /// Whether the list says of it what is known.
  static bool IsTheSame(const InventoryDevice& known, const Device& device);
  void Update(InventoryDevice& known, Device device, std::int64_t now_ms,
              InventoryDelta& delta);
  void LosePlugin(std::int64_t now_ms, InventoryDelta& delta);
  /// After each change of its health.
  void NoteHealth(InventoryDevice& known, std::int64_t now_ms);
  void Offer(const std::vector<std::string>& ids);
  void DropUnlisted();
  /// Figures and places of all devices anew.
  void Count();
  void MarkPlace(std::size_t place);

  std::vector<std::int64_t> machine_nodes_;
  EndpointState state_ = EndpointState::kUnknown;
  std::int64_t state_since_ms_ = 0;
  std::uint64_t stops_ = 0;
  std::map<Generation, Instance> instances_;
  std::optional<Generation> primary_;
  InventoryDevices devices_;
  /// Where in `devices_` the devices of the last list are, in the list's
  /// order. A list of the same devices in the same order then needs no sorting.
  /// Empty when that is not known.
  std::vector<std::uint32_t> list_order_;
  PlaceSet held_;  ///< Of those that pods hold.
  PlaceSet free_;  ///< Of those that work and are not held.
  PlaceSet held_unhealthy_;
  Probation probation_;
  std::int64_t restored_capacity_ = 0;
  Figures figures_;
};

/// In a list in natural order of IDs; null when there is none.
const InventoryDevice* FindDevice(const InventoryDevices& devices,
                                  const DeviceId& id);

/// By resource name.
using InventoryMap = std::map<ResourceName, Inventory, std::less<>>;

}  // namespace devmgr::device
