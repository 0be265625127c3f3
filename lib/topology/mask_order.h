// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/topology.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "topology/numa_distances.h"

namespace devmgr::topology {

/// Which of two masks of the same size is better: the one whose nodes are
/// closer to each other, where distances count; then the one of the lower
/// number, in which node i has the weight 2^i.
class MaskOrder {
 public:
  /// Less is better.
  using Key = std::tuple<std::uint64_t, std::uint64_t>;

  /// `distances`: null where they do not count. Borrowed.
  MaskOrder(NumaMask all, const NumaDistances* distances);

  Key Of(NumaMask mask) const {
    return {distances_ == nullptr ? 0 : distances_->SumOver(mask), mask.bits()};
  }

  bool has_distances() const { return distances_ != nullptr; }

  /// No part of `mask` with `count` nodes has a lesser key. `mask` has as many
  /// nodes at least.
  Key Bound(NumaMask mask, int count) const;

 private:
  std::uint64_t LeastSum(NumaMask mask, int count) const;

  const NumaDistances* distances_;
  /// Per node the others, the closest first; empty where distances do not
  /// count.
  std::array<std::vector<int>, NumaMask::kMaxNodes> closest_;
};

}  // namespace devmgr::topology
