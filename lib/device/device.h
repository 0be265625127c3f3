// SPDX-License-Identifier: Apache-2.0
//
// A device of a device plugin, as values that the protocol, the decisions and
// the ledger share.
#pragma once

#include <devmgr/container_devices.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {
enum class DeviceHealth;
}  // namespace devmgr

namespace devmgr::device {

/// Stored: never renumber.
enum class Health : std::uint8_t {
  kHealthy = 1,
  kUnhealthy = 2,  ///< Whatever else the plugin says of it.
  kUnknown = 3,    ///< No plugin is there that could tell.
};
/// As devmgr/status_types.h has it.
DeviceHealth PublicOf(Health health);

/// One device as a plugin reports it. Its ID is unique within its resource.
struct Device {
  DeviceId id;
  Health health = Health::kHealthy;
  std::vector<std::int64_t> numa_nodes;  ///< Ascending; empty: on no node.
  friend bool operator==(const Device&, const Device&) = default;
};

/// What one answer of a plugin to Allocate puts into a container.
struct ContainerEdits {
  std::vector<NamedValue> env;  ///< By name.
  std::vector<DeviceMount> mounts;
  std::vector<DeviceNode> devices;
  std::vector<NamedValue> annotations;   ///< By name.
  std::vector<std::string> cdi_devices;  ///< Qualified names.
  /// The plugin's serialised ContainerAllocateResponse, of which the above was
  /// read, as it came. Nothing in records from before it was kept.
  std::optional<std::string> response = {};
  friend bool operator==(const ContainerEdits&,
                         const ContainerEdits&) = default;
};

}  // namespace devmgr::device
