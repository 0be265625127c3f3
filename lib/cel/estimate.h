// SPDX-License-Identifier: Apache-2.0
//
// What an expression costs at worst, before it is run: by the same rules as
// the cost of an evaluation, with bounds for sizes instead of sizes.
#pragma once

#include <cstdint>

#include "cel/checker.h"

namespace devmgr::cel {

/// From `min` to `max`. Sums and products that do not fit stay at the largest
/// number there is.
struct CostRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  friend bool operator==(const CostRange&, const CostRange&) = default;
};

/// Of an expression of DeviceEnvironment(), on any device that the API permits.
CostRange EstimateDeviceCost(const Checked& checked);

}  // namespace devmgr::cel
