// SPDX-License-Identifier: Apache-2.0
//
// A world for the allocator out of bytes: each byte is one choice.
#pragma once

#include <vector>

#include "allocator/bed.h"
#include "support/luck.h"

namespace devmgr::allocator {

struct FuzzedWorld {
  Bed bed;
  /// Claims that come one after the other, some of them together.
  std::vector<std::vector<ResourceClaim>> rounds;
  /// What was held from the start contradicts no slice.
  bool is_sound = true;
};

/// Pools of any generation and size, devices on any nodes, taint rules, gates
/// that are off, claims that hold what is not there any more.
FuzzedWorld MakeFuzzedWorld(Luck& luck);

}  // namespace devmgr::allocator
