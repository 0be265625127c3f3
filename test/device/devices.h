// SPDX-License-Identifier: Apache-2.0
//
// Devices, inventories and reservations with the boring part filled in.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/inventory.h"
#include "device/reservation.h"
#include "device/reservation_table.h"

namespace devmgr::device {

inline constexpr char kResource[] = "example.com/dev";

inline Device Healthy(const std::string& id,
                      std::vector<std::int64_t> nodes = {}) {
  return {id, Health::kHealthy, std::move(nodes)};
}

inline Device Unhealthy(const std::string& id,
                        std::vector<std::int64_t> nodes = {}) {
  return {id, Health::kUnhealthy, std::move(nodes)};
}

inline bool NobodyHolds(const std::string& /*id*/) { return false; }
inline bool SomebodyHolds(const std::string& /*id*/) { return true; }

/// Connected as instance 1, which told these devices.
inline Inventory Live(std::vector<Device> list,
                      std::vector<std::int64_t> machine_nodes = {}) {
  Inventory inventory(std::move(machine_nodes));
  inventory.Connect(1, 0);
  inventory.Report(1, std::move(list), NobodyHolds, 0);
  return inventory;
}

inline std::vector<HeldDevice> HeldDevices(const std::vector<DeviceId>& ids) {
  std::vector<HeldDevice> devices;
  for (const std::string& id : ids) devices.push_back({.id = id});
  return devices;
}

/// Of an app container.
inline Reservation Held(const std::string& pod, const std::string& container,
                        const std::vector<DeviceId>& ids,
                        const std::string& resource = kResource) {
  return {.pod = {pod},
          .container = container,
          .resource = resource,
          .devices = HeldDevices(ids)};
}

inline std::vector<DeviceId> IdsOf(const std::vector<HeldDevice>& devices) {
  std::vector<DeviceId> ids;
  for (const HeldDevice& device : devices) ids.push_back(device.id);
  return ids;
}

inline ReservationTable TableOf(const std::vector<Reservation>& reservations) {
  ReservationTable table;
  for (const Reservation& reservation : reservations) {
    EXPECT_TRUE(table.Add(reservation).ok());
  }
  return table;
}

}  // namespace devmgr::device
