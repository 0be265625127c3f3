// SPDX-License-Identifier: Apache-2.0
//
// Strategic merge patches, for the types whose lists are in the table of
// strategic_merge.cc: pods, nodes, events, claims. Lists that the table lacks
// are atomic.
#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "apistore/answer.h"

namespace devmgr::apistore {

/// Merges `patch` into `target`, an object of this kind. Knows null deletes,
/// lists merged by key, `$patch: delete|replace|merge`,
/// `$deleteFromPrimitiveList/<f>`, `$setElementOrder/<f>` and `$retainKeys`.
/// InvalidArgument when a directive or the element of a merged list is not as
/// it has to be; `target` is then partly patched.
absl::Status StrategicMerge(std::string_view kind, Json& target,
                            const Json& patch);

}  // namespace devmgr::apistore
