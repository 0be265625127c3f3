// SPDX-License-Identifier: Apache-2.0
//
// What a pod-resources endpoint tells of pods. Follows the kubelet's listing of
// active pods (apis/podresources/server_v1.go); docs/differences.md has what is
// told otherwise. Pure.
#pragma once

#include <devmgr/pod_resources.h>

#include <memory>

#include "view/moment.h"

namespace devmgr::view {

/// All active pods. `before`: what this gave of an earlier moment of the same
/// node, or null. A pod for which nothing has changed is the same pointer as
/// there; when none has, so is the list.
std::shared_ptr<const PodResourcesList> PodResourcesOf(
    const Moment& moment,
    const std::shared_ptr<const PodResourcesList>& before);

/// Of the active pods of that name the one that the source has, else the one
/// that was seen last; null when there is none.
std::shared_ptr<const PodResources> PodResourcesOf(const Moment& moment,
                                                   const ObjectName& name);

}  // namespace devmgr::view
