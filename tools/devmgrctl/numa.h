// SPDX-License-Identifier: Apache-2.0
//
// NUMA nodes, as `get numa` shows them, and what the hints of a pod came to, as
// `explain pod` does.
#pragma once

#include <absl/status/status.h>
#include <devmgr/topology.h>

#include "objects.h"
#include "session.h"

namespace devmgr::ctl {

absl::Status GetNuma(const Session& session, Inspector& inspector);

Json ItemOf(const PodAlignmentInfo& alignment);
void PrintAlignment(const Session& session, const PodAlignmentInfo& alignment);

}  // namespace devmgr::ctl
