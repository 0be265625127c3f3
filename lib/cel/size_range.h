// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cel/estimate.h"

namespace devmgr::cel {

constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t AddBounded(std::uint64_t a, std::uint64_t b) {
  return b > kUnbounded - a ? kUnbounded : a + b;
}
constexpr std::uint64_t MultiplyBounded(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kUnbounded / b ? kUnbounded : a * b;
}
inline std::uint64_t ScaleBounded(std::uint64_t size, double factor) {
  constexpr double kTwo64 = 18446744073709551616.0;
  const auto number = static_cast<double>(size);
  if (number > 0 && factor > 0 && number > kTwo64 / factor) return kUnbounded;
  const double scaled = std::ceil(number * factor);
  return scaled >= kTwo64 ? kUnbounded : static_cast<std::uint64_t>(scaled);
}

/// Bounds of a size, both included. Sums and products that do not fit are the
/// largest number of 64 bits, as with costs.
using SizeRange = CostRange;

constexpr SizeRange Fixed(std::uint64_t size) { return {size, size}; }
constexpr SizeRange kUnknownSize = {0, kUnbounded};

constexpr CostRange operator+(const CostRange& a, const CostRange& b) {
  return {AddBounded(a.min, b.min), AddBounded(a.max, b.max)};
}
constexpr CostRange operator*(const CostRange& a, const CostRange& b) {
  return {MultiplyBounded(a.min, b.min), MultiplyBounded(a.max, b.max)};
}
/// Scales both ends and rounds them up.
inline CostRange operator*(const CostRange& a, double factor) {
  return {ScaleBounded(a.min, factor), ScaleBounded(a.max, factor)};
}
/// The smallest range that includes both.
constexpr CostRange Union(const CostRange& a, const CostRange& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

}  // namespace devmgr::cel
