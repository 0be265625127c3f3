// SPDX-License-Identifier: Apache-2.0
//
// The claims of a container, for those that show them (pod-resources). Follows
// the kubelet's GetContainerClaimInfos.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <string_view>

#include "claim/pod_plan.h"
#include "state/state.h"

namespace devmgr::claim {

/// Of a pod whose claims are booked.
ContainerClaims HeldClaimsOf(const state::State& state,
                             const state::PodRecord& pod,
                             const ContainerName& container);

/// Of a pod that holds none of its claims.
ContainerClaims MissingClaimsOf(const Pod& pod, const ContainerName& container,
                                const ObjectSnapshot& objects,
                                const PlanOptions& options);

}  // namespace devmgr::claim
