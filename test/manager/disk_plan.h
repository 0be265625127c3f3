// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "checkpoint/simulated_disk.h"

namespace devmgr {

/// How the disk fails.
struct DiskPlan {
  std::uint64_t call = 0;  ///< From this one on; 0 is never.
  checkpoint::DiskFault fault = checkpoint::DiskFault::kError;
  bool for_good = false;  ///< Until it is healed; else at this one call.

  /// How the call of that number ends.
  checkpoint::DiskFault FaultOf(std::uint64_t number) const {
    const bool fails = for_good ? number >= call : number == call;
    return call == 0 || !fails ? checkpoint::DiskFault::kNone : fault;
  }
};

}  // namespace devmgr
