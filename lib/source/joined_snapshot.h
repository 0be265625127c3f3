// SPDX-License-Identifier: Apache-2.0
//
// Two snapshots as one. Pure.
#pragma once

#include <devmgr/host.h>

#include <string>

namespace devmgr::source {

/// The objects of both. A pod that `second` has, too, by name or by UID, and a
/// claim that it has by name, count as they are there, and are a problem that
/// says `why`. `vouched`, `watch` and the marker are those of `first`.
ObjectSnapshot JoinSnapshots(const ObjectSnapshot& first,
                             const ObjectSnapshot& second,
                             const std::string& first_name,
                             const std::string& why);

}  // namespace devmgr::source
