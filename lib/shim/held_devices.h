// SPDX-License-Identifier: Apache-2.0
//
// Which devices a container holds, as its annotations tell or as its runtime
// made them: pure functions, but for looks at the host.
#pragma once

#include <devmgr/cdi.h>
#include <devmgr/cdi_registry.h>
#include <devmgr/container_devices.h>
#include <devmgr/runtime_inspection.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace devmgr::shim {

struct HeldDevices {
  /// Of device plugins: resource and ID.
  std::set<std::pair<std::string, std::string>> devices;
  std::set<std::string> cdi_devices;  ///< Names.

  bool empty() const { return devices.empty() && cdi_devices.empty(); }
  void Add(const HeldDevices& other);
  void Remove(const HeldDevices& other);
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

/// What the source of devices gives to a container, or to all of a pod.
HeldDevices HeldBy(const ContainerDevices& container);
HeldDevices HeldBy(const PodDevices& pod);

/// Value of kDevicesAnnotation: JSON.
std::string WriteHeld(const HeldDevices& held);
/// What cannot be read says nothing.
HeldDevices ReadHeld(std::string_view text);

/// By kDevicesAnnotation, and by annotations that name CDI devices.
HeldDevices HeldByAnnotations(
    const std::map<std::string, std::string>& annotations);

/// By all that the runtime tells of a container: its annotations, the CDI
/// devices that it was created with, and those of which it has all device
/// nodes. A privileged container has the nodes of the whole host, which say
/// nothing. Blocks as `host` does.
HeldDevices HeldByConfig(const RuntimeContainerConfig& config,
                         const CdiRegistry& registry, const CdiHost& host);

}  // namespace devmgr::shim
