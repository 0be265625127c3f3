// SPDX-License-Identifier: Apache-2.0
//
// The worst-case cost of an expression, found before it is evaluated. The rules
// are those of the actual cost, applied to bounds of sizes instead of sizes.
#pragma once

#include <cstdint>

#include "cel/checker.h"

namespace devmgr::cel {

/// Bounds of a cost, both included. Sums and products that do not fit are the
/// largest number of 64 bits.
struct CostRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  friend bool operator==(const CostRange&, const CostRange&) = default;
};

/// The bounds for an expression of DeviceEnvironment(), over all devices that
/// the API permits.
CostRange EstimateDeviceCost(const Checked& checked);

}  // namespace devmgr::cel
