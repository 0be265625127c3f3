// SPDX-License-Identifier: Apache-2.0
//
// Which container has which device.
#pragma once

#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// A device that a container of a pod has.
struct ContainerDevice {
  /// Extended resource by which the container has it; empty: by a claim of its
  /// own.
  ResourceName resource;
  ObjectName claim;    ///< Empty: it is a device plugin's.
  std::string driver;  ///< As `claim`.
  std::string pool;    ///< As `claim`.
  std::string device;  ///< ID at its plugin, or name in the pool.
  std::vector<std::string> cdi_devices;  ///< Its own, qualified.
  // What hardware it is (HardwareOptions); empty where it is not known.
  std::string uuid;
  std::string pci_address;  ///< With its domain: `0000:3b:00.0`.
  friend bool operator==(const ContainerDevice&,
                         const ContainerDevice&) = default;
};

/// A container that has devices which its pod was given, for those who have to
/// join what they know of containers with what they know of devices.
struct DeviceHolderInfo {
  ObjectName pod;
  PodUid pod_uid;
  ContainerName container;
  // Of its latest attempt; empty while it has none, or where it is not known
  // what runs (Host::runtime).
  std::string container_id;
  std::string state;  ///< RuntimeContainerStateName.
  std::optional<WallTime> created_at;
  /// Of plugins, by resource, then of claims.
  std::vector<ContainerDevice> devices;
  /// Names that a plugin gave for several devices at once, and that say of none
  /// of them that they are its own.
  std::vector<std::string> cdi_devices;
  friend bool operator==(const DeviceHolderInfo&,
                         const DeviceHolderInfo&) = default;
};

}  // namespace devmgr
