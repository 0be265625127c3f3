// SPDX-License-Identifier: Apache-2.0
#include "allocator/figures.h"

#include <algorithm>
#include <tuple>

#include "allocator/amount.h"
#include "allocator/counters.h"

namespace devmgr::allocator {

Figures FiguresOf(const Inventory& inventory, const AllocatedState& held) {
  Figures figures;
  for (const Device& device : inventory.devices()) {
    Figures::Devices& of = figures.drivers[std::string(device.id.driver)];
    ++(held.Find(device.id) != nullptr ? of.held : of.free);
  }
  const CounterState state(inventory, held);
  const std::vector<Pool>& pools = inventory.pools();
  for (PoolNumber i = 0; i < pools.size(); ++i) {
    for (const Counter& counter : pools[i].counters) {
      figures.counters.push_back(
          {pools[i].id, counter.name, ToQuantity(counter.total, Quantity()),
           ToQuantity(state.Left(i, counter), Quantity())});
    }
  }
  std::sort(figures.counters.begin(), figures.counters.end(),
            [](const Figures::Counter& a, const Figures::Counter& b) {
              return std::tie(a.pool, a.name) < std::tie(b.pool, b.name);
            });
  return figures;
}

}  // namespace devmgr::allocator
