// SPDX-License-Identifier: Apache-2.0
//
// ResourceSlices as people see them. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "view/moment.h"

namespace devmgr::view {

/// The slices that count for `node_name`, by name: those of that node, and
/// those that are not for one node by its name; empty: every slice. `is_hidden`
/// says whether devices of a driver are not allocated, as it is not registered;
/// `problems` are those of the newest generations of pools.
std::vector<SliceInfo> SlicesOf(
    const ObjectSnapshot& objects, const std::string& node_name,
    const std::function<bool(std::string_view driver)>& is_hidden,
    const PoolProblems& problems = {});

}  // namespace devmgr::view
