// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace devmgr::control {

/// The sum of two numbers of devices, from 0 on. Numbers beyond 64 bits are as
/// good as the largest: no node has so many.
constexpr std::int64_t SaturatedSum(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return a > kMax - b ? kMax : a + b;
}

}  // namespace devmgr::control
