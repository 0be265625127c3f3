// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/counters.h"
#include "allocator/inventory.h"

namespace devmgr::allocator {

/// What follows for the devices of an inventory from what claims hold: looked
/// up once for all searches in the same state.
struct Holdings {
  Holdings(const Inventory& inventory, AllocatedState held)
      : state(std::move(held)), counters(inventory, state) {
    devices.reserve(inventory.devices().size());
    std::vector<const HeldPool*> pools;
    for (const Pool& pool : inventory.pools()) {
      pools.push_back(state.FindPool(pool.id));
    }
    for (const Device& device : inventory.devices()) {
      const HeldPool* pool = pools[device.pool];
      devices.push_back(pool == nullptr ? nullptr
                                        : pool->Find(device.id.device));
    }
  }

  AllocatedState state;
  CounterState counters;
  /// By number; null when no claim holds the device. They lie in `state`.
  std::vector<const HeldDevice*> devices;
};

}  // namespace devmgr::allocator
