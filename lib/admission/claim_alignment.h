// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/topology.h>

#include <functional>
#include <vector>

#include "claim/pod_plan.h"
#include "topology/merge.h"

namespace devmgr::admission {

/// Hints of the devices that the claims of a container have been allocated, by
/// their attribute `resource.kubernetes.io/numaNode`; of all containers when
/// the name is empty. Claims without an allocation have none. `resource` is the
/// entry of the pod as the container spells it: `gpu` or `gpu/request`.
/// `is_local`: this node has allocated the claim, or is about to; its hints are
/// binding then. Null: it allocates none.
std::vector<topology::ResourceHints> HintsOfClaims(
    const Pod& pod, const ContainerName& container,
    const ObjectSnapshot& objects, const claim::PlanOptions& options,
    NumaMask machine,
    const std::function<bool(const ResourceClaim&)>& is_local = nullptr);

}  // namespace devmgr::admission
