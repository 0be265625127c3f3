// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devmgr {

/// Where a device of a container comes from.
struct DeviceOrigin {
  std::string claim;    ///< Name of the claim object.
  std::string request;  ///< Base name of the first request that matched.
  std::string driver;
  std::string pool;
  std::string device;
  ResourceName resource;  ///< Set for extended resources only.
  friend bool operator==(const DeviceOrigin&, const DeviceOrigin&) = default;
};

/// A fully qualified CDI device ID (`vendor.com/class=name`) to put into
/// `CDI_devices` of the CRI request.
struct CdiDevice {
  std::string name;
  DeviceOrigin origin;
  friend bool operator==(const CdiDevice&, const CdiDevice&) = default;
};

// What device plugins ask for. `resource` tells whose plugin it was; its
// devices stand in ContainerDevices::resources.

/// A name and a value: an environment variable or an annotation.
struct NamedValue {
  std::string name;
  std::string value;
  ResourceName resource = {};
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
};

struct DeviceMount {
  std::string container_path;
  std::string host_path;
  bool read_only = false;
  ResourceName resource = {};
  friend bool operator==(const DeviceMount&, const DeviceMount&) = default;
};

struct DeviceNode {
  std::string container_path;
  std::string host_path;
  std::string permissions;  ///< Of `r`, `w`, `m`.
  ResourceName resource = {};
  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

/// Devices of a device plugin that a container holds.
struct HeldResource {
  ResourceName name;
  std::vector<DeviceId> devices;  ///< IDs, in natural order.
  friend bool operator==(const HeldResource&, const HeldResource&) = default;
};

/// What to inject into one container. The order is stable: pod-claim order,
/// then driver name, then the order of the driver's answer; each ID once.
struct ContainerDevices {
  ContainerName name;
  bool init = false;
  std::vector<CdiDevice> cdi_devices;
  std::vector<NamedValue> env;
  std::vector<DeviceMount> mounts;
  std::vector<DeviceNode> devices;
  std::vector<NamedValue> annotations;
  std::vector<HeldResource> resources;  ///< By name.
  /// An init container that had devices of plugins: they were given back when
  /// the init containers had ended (DeviceManager::StartReleaseInitContainers),
  /// so that this does not tell what it would need to run.
  bool devices_released = false;
  friend bool operator==(const ContainerDevices&,
                         const ContainerDevices&) = default;
};

/// The answer for a whole pod: every container, init containers first, also
/// those without devices.
struct PodDevices {
  ObjectName name;
  PodUid uid;
  std::vector<ContainerDevices> containers;
  friend bool operator==(const PodDevices&, const PodDevices&) = default;
};

}  // namespace devmgr
