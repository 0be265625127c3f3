// SPDX-License-Identifier: Apache-2.0
#include "topology/numa_distances.h"

#include <bit>

namespace devmgr::topology {

std::uint64_t NumaDistances::SumOver(NumaMask mask) const {
  std::uint64_t sum = 0;
  for (std::uint64_t a = mask.bits(); a != 0; a &= a - 1) {
    for (std::uint64_t b = mask.bits(); b != 0; b &= b - 1) {
      sum += Of(std::countr_zero(a), std::countr_zero(b));
    }
  }
  return sum;
}

}  // namespace devmgr::topology
