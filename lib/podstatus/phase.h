// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>
#include <devmgr/pod_status.h>

#include <string>

namespace devmgr::podstatus {

/// The phase of a pod by the states of its containers. `has_ended`: none of
/// them is started again, whatever the restart policy says.
/// Follows the kubelet's getPhase.
std::string PhaseOf(const Pod& pod, const ReportedPodStatus& status,
                    bool has_ended);

}  // namespace devmgr::podstatus
