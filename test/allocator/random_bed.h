// SPDX-License-Identifier: Apache-2.0
//
// Small worlds and claims by chance, in which all that the allocator looks at
// occurs often and devices are scarce.
#pragma once

#include <string>
#include <vector>

#include "allocator/bed.h"
#include "support/luck.h"

namespace devmgr::allocator {

/// Pools of drivers a and b on n1, on n2 and for both, with counters, groups,
/// shared devices, taints, attributes and lists. Selectors fail on no device.
Bed RandomBed(Luck& luck);

/// Claims for it. `may_want_all`: some ask for all devices; `may_fail`: some
/// have selectors that fail on some devices.
std::vector<ResourceClaim> RandomClaims(Luck& luck, bool may_want_all = true,
                                        bool may_fail = false);

/// Has the state hold what the last outcome gave to `claims`.
void Commit(Bed& bed, const std::vector<ResourceClaim>& claims);

/// What of the last outcome breaks a rule, given what was held before it; empty
/// when nothing does.
std::string Broken(const Bed& bed, const std::vector<ResourceClaim>& claims);

}  // namespace devmgr::allocator
