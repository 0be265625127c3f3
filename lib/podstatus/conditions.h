// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>
#include <devmgr/pod_status.h>

#include <vector>

namespace devmgr::podstatus {

/// Those of a pod's conditions that the agent of the node keeps, without times,
/// by what `status` says of the phase and the containers: whether a sandbox is
/// there, Initialized, Ready, ContainersReady.
/// Follows the kubelet's pkg/kubelet/status/generate.go.
std::vector<Condition> ConditionsOf(const Pod& pod,
                                    const ReportedPodStatus& status,
                                    bool has_sandbox);

}  // namespace devmgr::podstatus
