// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "allocator/allocator.h"
#include "allocator/features.h"
#include "state/records.h"

namespace devmgr::control {

/// Keeps claims off a device that does not work, as a rule of an administrator
/// would: with effect NoSchedule and key `devmgr/unhealthy`. Its name is no
/// object's name.
DeviceTaintRule UnhealthyTaint(const state::DeviceKey& device);

/// The devices of this node that drivers have published and that can be had
/// now. Made anew only when slices, taint rules, the node or the registered
/// drivers are others. Lives on one thread.
class LocalInventory {
 public:
  explicit LocalInventory(allocator::Features features) : features_(features) {}

  /// Devices of drivers that are not registered are left out: nothing could
  /// prepare them. The result is valid until the next call.
  const allocator::Inventory& Follow(
      const ObjectSnapshot& objects, const std::string& node_name,
      const std::function<bool(const std::string& driver)>& registered);

  /// As of the last call.
  const Node& node() const { return *node_; }

  /// Another number whenever what can be had of the driver, or of any where it
  /// is WaitingFor::kAnyDriver, may be something else; as of the last call.
  std::uint64_t VersionOf(const std::string& driver) const;

  /// Drivers that have published slices and are left out, as of the last call.
  const std::set<std::string>& left_out() const { return left_out_; }

 private:
  void FollowSlices(const ObjectMap<ResourceSlice>& slices);

  const allocator::Features features_;
  // What the inventory was made of, and refers to.
  ObjectMap<ResourceSlice> slices_;
  ObjectMap<DeviceTaintRule> taint_rules_;
  std::shared_ptr<const Node> node_;
  std::set<std::string> drivers_;  ///< Of the slices.
  std::set<std::string> left_out_;
  std::uint64_t version_ = 0;  ///< Of all that is not one driver's.
  std::uint64_t slice_version_ = 0;
  std::map<std::string, std::uint64_t> versions_;  ///< `slice_version_` then.
  std::shared_ptr<const allocator::Inventory> inventory_;
};

}  // namespace devmgr::control
