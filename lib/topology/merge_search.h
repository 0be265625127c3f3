// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/topology.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/mask_order.h"

namespace devmgr::topology {

/// What masks of several lists can have in common: the best of what results
/// where one mask of each list is taken. Best are masks of `best_count` nodes,
/// then smaller ones, the largest first, then larger ones, the smallest first;
/// among those of one size the order decides.
struct CommonMaskQuestion {
  /// Empty masks count for nothing. Any number of lists.
  std::vector<std::vector<NumaMask>> lists;
  NumaMask all;  ///< What every result lies in.
  int best_count = 0;
  const MaskOrder& order;
  std::uint64_t steps = 0;  ///< The limit.
};

struct CommonMask {
  std::optional<NumaMask> best;  ///< No value: no nodes are common.
  bool proven = true;            ///< The limit was not reached.
  std::uint64_t steps = 0;
};

CommonMask FindCommonMask(CommonMaskQuestion question);

}  // namespace devmgr::topology
