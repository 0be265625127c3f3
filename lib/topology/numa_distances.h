// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/topology.h>

#include <cstdint>
#include <vector>

namespace devmgr::topology {

/// How far NUMA nodes are from each other, as firmware says it: 10 is local,
/// 11 to 254 remote, 255 out of reach. By the ids of nodes, whichever a machine
/// has. A pair without a distance has 0.
class NumaDistances {
 public:
  NumaDistances() : distances_(kWidth * kWidth) {}

  /// Both are 0 to 63.
  void Set(int from, int to, std::uint32_t distance) {
    distances_[Index(from, to)] = distance;
  }
  std::uint32_t Of(int from, int to) const {
    return distances_[Index(from, to)];
  }

  /// Over all ordered pairs of nodes of `mask`, each with itself included.
  /// Divided by the square of the number of nodes it is the average that the
  /// kubelet compares; masks of equal size can be compared by the sum.
  std::uint64_t SumOver(NumaMask mask) const;

  friend bool operator==(const NumaDistances&, const NumaDistances&) = default;

 private:
  static constexpr std::size_t kWidth = NumaMask::kMaxNodes;
  static std::size_t Index(int from, int to) {
    return static_cast<std::size_t>(from) * kWidth +
           static_cast<std::size_t>(to);
  }

  std::vector<std::uint32_t> distances_;
};

}  // namespace devmgr::topology
