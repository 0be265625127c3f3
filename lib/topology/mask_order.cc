// SPDX-License-Identifier: Apache-2.0
#include "topology/mask_order.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace devmgr::topology {
namespace {

std::uint64_t LowestBits(std::uint64_t bits, int count) {
  std::uint64_t lowest = 0;
  for (; count > 0; --count) {
    lowest |= bits & (~bits + 1);
    bits &= bits - 1;
  }
  return lowest;
}

}  // namespace

MaskOrder::MaskOrder(NumaMask all, const NumaDistances* distances)
    : distances_(distances) {
  if (distances == nullptr) return;
  for (const std::int64_t node : all.Nodes()) {
    const int from = static_cast<int>(node);
    auto& others = closest_[static_cast<std::size_t>(from)];
    for (const std::int64_t other : all.Nodes()) {
      if (other != node) others.push_back(static_cast<int>(other));
    }
    std::sort(others.begin(), others.end(), [&](int a, int b) {
      return distances->Of(from, a) < distances->Of(from, b);
    });
  }
}

MaskOrder::Key MaskOrder::Bound(NumaMask mask, int count) const {
  if (mask.Count() == count) return Of(mask);
  return {distances_ == nullptr ? 0 : LeastSum(mask, count),
          LowestBits(mask.bits(), count)};
}

/// The sum is one of rows, a row per node of the part. A row is at least the
/// node's own distance and those to the closest others of `mask`, and the part
/// has `count` of the rows.
std::uint64_t MaskOrder::LeastSum(NumaMask mask, int count) const {
  std::array<std::uint64_t, NumaMask::kMaxNodes> rows;
  std::size_t filled = 0;
  for (std::uint64_t left = mask.bits(); left != 0; left &= left - 1) {
    const int node = std::countr_zero(left);
    std::uint64_t row = distances_->Of(node, node);
    int missing = count - 1;
    for (const int other : closest_[static_cast<std::size_t>(node)]) {
      if (missing == 0) break;
      if (!mask.Contains(other)) continue;
      row += distances_->Of(node, other);
      --missing;
    }
    rows[filled++] = row;
  }
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(filled);
  std::sort(rows.begin(), end);
  std::uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += rows[static_cast<std::size_t>(i)];
  return sum;
}

}  // namespace devmgr::topology
