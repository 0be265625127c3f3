// SPDX-License-Identifier: Apache-2.0
//
// How many of the devices of an inventory are held, and what is left of its
// counters.
#pragma once

#include <devmgr/objects.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/inventory.h"

namespace devmgr::allocator {

struct Figures {
  struct Devices {
    std::size_t free = 0;  ///< No claim has any part of it.
    std::size_t held = 0;
  };
  struct Counter {
    PoolId pool;
    CounterName name;
    Quantity total;
    Quantity left;  ///< Negative: more is charged than there is.
  };
  std::map<std::string, Devices> drivers;  ///< Of pools that can be had.
  std::vector<Counter> counters;           ///< By pool and name.
};

Figures FiguresOf(const Inventory& inventory, const AllocatedState& held);

}  // namespace devmgr::allocator
