// SPDX-License-Identifier: Apache-2.0
//
// What happens to the devices of a node, in order: pods get devices and give
// them back, devices stop working, resources get other owners.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/open_enum.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace devmgr {

enum class DeviceChangeKind {
  kHeld,       ///< Of a snapshot: a container of a pod has these devices.
  kAllocated,  ///< It has them from now on.
  kReleased,   ///< It has them no more.
  /// These devices are in another state now. What pods hold does not change.
  kHealthChanged,
  kHandedOver,  ///< The name of an extended resource has another owner now.
  /// Changes of health may be missing before this one. All devices count as
  /// working, but for those that kHealthChanged names from here on.
  kHealthReset,
};
/// As the enumerator: `HealthChanged`.
DEVMGR_EXPORT std::string_view DeviceChangeKindName(DeviceChangeKind kind);
using OpenDeviceChangeKind = OpenEnum<DeviceChangeKind, DeviceChangeKindName>;

/// A place between two changes: all up to it are known. It stays valid over
/// restarts, as long as the ledger's history reaches back to it.
///
/// Changes of what pods hold are those of a decision of the ledger. Changes of
/// health are in no decision: their place is after the last decision that was
/// on disk when they were seen, and another process cannot tell them any more.
struct DEVMGR_EXPORT ChangeToken {
  static constexpr std::uint32_t kWhole =
      std::numeric_limits<std::uint32_t>::max();

  std::uint64_t sequence = 0;  ///< Of the decision.
  /// So many of its changes are known; kWhole: all of them.
  std::uint32_t index = kWhole;
  /// So many changes of health after it; with kWhole only.
  std::uint32_t health = 0;
  std::uint64_t process = 0;  ///< That has seen these; 0: a reader of the disk.

  /// `1234`, `1234.2` within a decision, `1234.h5` after changes of health;
  /// then `-` and the process in hexadecimal digits, if there is one.
  std::string ToString() const;
  /// InvalidArgument: it is none.
  static absl::StatusOr<ChangeToken> Parse(std::string_view text);
  /// The order of the places of one process, and of the ledger alone.
  friend std::strong_ordering operator<=>(const ChangeToken& a,
                                          const ChangeToken& b) {
    if (const auto order = a.sequence <=> b.sequence; order != 0) return order;
    if (const auto order = a.index <=> b.index; order != 0) return order;
    return a.health <=> b.health;
  }
  friend bool operator==(const ChangeToken& a, const ChangeToken& b) {
    return (a <=> b) == 0;
  }
};

/// Which members are set depends on the kind.
struct DeviceChange {
  ChangeToken token;  ///< The place after this change.
  WallTime time;      ///< Of a snapshot: when it was taken.
  OpenDeviceChangeKind kind = DeviceChangeKind::kAllocated;

  // Not of kHandedOver and kHealthReset.
  /// Whose devices; of health: that holds them, or empty. Devices that several
  /// pods hold are in a change for each.
  ObjectName pod;
  PodUid pod_uid;
  /// Empty: it is not known, or the pod has the device of a claim that none of
  /// its containers uses.
  ContainerName container;
  /// Of a device plugin, or by which a container asks for devices of drivers.
  ResourceName resource;
  ObjectName claim;  ///< Empty: the devices are a plugin's.
  ClaimUid claim_uid;
  std::string driver;  ///< Empty: the devices are a plugin's.
  std::string pool;
  std::vector<DeviceId> devices;
  std::string share_id;  ///< Of a device that is shared; else empty.
  std::vector<std::string> cdi_devices;  ///< Qualified names.

  std::optional<OpenDeviceHealth> health;         ///< Of kHealthChanged.
  std::optional<OpenResourceOwner> owner;         ///< Of kHandedOver.
  std::optional<OpenResourceOwner> former_owner;  ///< Not set: there was none.

  /// The kind of the decision, as the history has it: `Release`; of health
  /// `Reported`, `Kept` or `Snapshot`; of a snapshot `Snapshot`.
  std::string reason;
  std::string message;  ///< For people.
};

/// Begin with what holds now: kHeld, kHealthReset, kHealthChanged.
struct FromSnapshot {};
/// Begin with the oldest change that the history has.
struct FromOldest {};
using ChangesFrom = std::variant<FromSnapshot, FromOldest, ChangeToken>;

struct DeviceChanges {
  std::vector<DeviceChange> changes;  ///< In order.
  /// Where to go on. Also without changes: it may have moved.
  ChangeToken next;
  /// There are more already.
  bool more = false;
};

}  // namespace devmgr
