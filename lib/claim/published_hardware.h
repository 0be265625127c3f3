// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/options.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/hardware.h"
#include "state/records.h"

namespace devmgr::claim {

/// Which hardware the devices are that drivers have published for this node.
/// Computed when slices change. Devices of which nothing is known cost nothing.
/// Lives on one thread.
class PublishedHardware {
 public:
  /// Without a `node_name` every slice of a node counts. Devices that several
  /// nodes reach have no hardware of this node.
  PublishedHardware(HardwareOptions options, std::string node_name);

  const HardwareOptions& options() const { return options_; }

  /// At a cost of what has changed.
  void Follow(const ObjectMap<ResourceSlice>& slices);
  /// Another one after each change.
  std::uint64_t version() const { return version_; }

  /// Of one device; empty when nothing is known of it.
  device::Hardware Find(const state::DeviceKey& device) const;

  /// No device has hardware that is known.
  bool empty() const { return devices_.empty(); }

  /// Calls `visit(key, hardware)` for each device that has this identity.
  void VisitDevicesWith(
      const device::PhysicalIdentity& identity,
      const std::function<void(const state::DeviceKey&,
                               const device::Hardware&)>& visit) const;

  /// Each device that has hardware, once.
  void VisitDevices(
      const std::function<void(const state::DeviceKey&,
                               const device::Hardware&)>& visit) const;

 private:
  /// A device of a slice in `slices_`.
  struct Place {
    const ResourceSlice* slice;
    std::size_t device;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  void Add(const ResourceSlice& slice);
  void Remove(const ResourceSlice& slice);
  device::Hardware HardwareOf(const ResourceSlice& slice,
                              const SliceDevice& device) const;

  const HardwareOptions options_;
  const std::string node_name_;
  ObjectMap<ResourceSlice> slices_;  ///< As they were followed last.
  std::uint64_t version_ = 0;
  std::set<std::pair<device::PhysicalIdentity, Place>> devices_;
  /// Driver and pool.
  std::map<std::pair<std::string, std::string>, std::set<const ResourceSlice*>>
      pools_;
};

}  // namespace devmgr::claim
