// SPDX-License-Identifier: Apache-2.0
//
// Changes of the health of devices, as readers of changes get them: devices
// that are alike are in one change, for each pod that holds some of them. Pure.
#pragma once

#include <devmgr/device_changes.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/inventory.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::view {

/// The health of one device, and why.
struct HealthNews {
  DeviceId device;  ///< Of a plugin its ID, of a driver its name in the pool.
  std::string pool;
  device::Health health = device::Health::kUnknown;
  std::string why;
};

/// Of devices of a plugin: what a list or the end of a plugin has changed.
/// Devices that are listed for the first time are news if they do not work.
std::vector<HealthNews> NewsOf(const device::InventoryDelta& delta,
                               const device::Inventory& inventory);

/// Of devices of a plugin.
std::vector<DeviceChange> ChangesOfPlugin(const state::State& state,
                                          const ResourceName& resource,
                                          const std::vector<HealthNews>& news);
/// Of devices of a driver.
std::vector<DeviceChange> ChangesOfDriver(const state::State& state,
                                          const std::string& driver,
                                          const std::vector<HealthNews>& news);

/// kHealthReset, then all devices that do not work, as far as anything is known
/// of them. Without tokens.
std::vector<DeviceChange> HealthOfAll(const Moment& moment, WallTime time);

}  // namespace devmgr::view
