// SPDX-License-Identifier: Apache-2.0
//
// From the devices that were chosen to what stands in the claims' status.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/eligibility.h"
#include "allocator/inventory.h"
#include "allocator/requests.h"
#include "allocator/search.h"
#include "allocator/trial.h"

namespace devmgr::allocator {

/// One allocation for each claim, in their order:
///
///   results   in order of requests, and of trial within one
///   config    of each class once, in order of the requests that use it; then
///             of the claim, what applies to a request or to the alternative
///             that was chosen. Requests are empty where all are meant
///   nodes     as NodeSelection has it
///
/// Only devices that claims share have a share ID and consumed capacity, which
/// is all that they have of capacity. The time is left for the commit.
std::vector<Allocation> MakeAllocations(
    const Inventory& inventory, const Requests& requests,
    const Eligibility& eligibility, const Search& search, const Trial& trial,
    const std::function<std::string()>& new_share_id);

}  // namespace devmgr::allocator
