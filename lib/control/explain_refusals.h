// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <string>

#include "allocator/allocator.h"

namespace devmgr::control {

/// Why `outcome` has no solution, for people: what is wrong with a claim, or
/// for each request that lacks devices how many were refused for which reason.
/// Those that are busy are named with the pods that hold them.
std::string RefusalText(const allocator::Outcome& outcome,
                        const ObjectSnapshot& objects);

}  // namespace devmgr::control
