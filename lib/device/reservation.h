// SPDX-License-Identifier: Apache-2.0
//
// What a container holds of a resource: plain records that the ledger stores.
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devmgr::device {

/// Stored: never renumber.
enum class ContainerKind : std::uint8_t {
  kInit = 1,
  kSidecar = 2,  ///< An init container that is restarted always.
  kApp = 3,
};

/// Stored: never renumber.
enum class ReservationPhase : std::uint8_t {
  kReserved = 1,   ///< Chosen; the plugin may or may not have been called.
  kCommitted = 2,  ///< The plugin's answer is recorded.
  /// An init container's, given back when the init containers had ended: holds
  /// nothing, and tells what the container needs to run again.
  kReleased = 3,
};

/// A device as it was when it was chosen.
struct HeldDevice {
  DeviceId id;
  std::vector<std::int64_t> numa_nodes;  ///< Ascending.
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

/// What one container holds of one resource. Containers of one pod may hold the
/// same device, see pod_plan.h; containers of two pods never do.
struct Reservation {
  PodUid pod;
  ContainerName container;
  ContainerKind kind = ContainerKind::kApp;
  ResourceName resource;
  ReservationPhase phase = ReservationPhase::kReserved;
  std::vector<HeldDevice> devices;  ///< In natural order of IDs.
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

/// Devices that no pod holds any more.
struct FreedDevices {
  ResourceName resource;
  std::vector<DeviceId> ids;
  friend bool operator==(const FreedDevices&, const FreedDevices&) = default;
};

}  // namespace devmgr::device
