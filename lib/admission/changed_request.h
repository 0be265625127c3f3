// SPDX-License-Identifier: Apache-2.0
//
// Whether a pod that was given its devices still asks for these. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <vector>

#include "admission/device_verdict.h"
#include "claim/pod_plan.h"
#include "device/pod_needs.h"
#include "state/state.h"

namespace devmgr::admission {

/// Judges the request of a pod whose answer is frozen, or is about to be: what
/// a container asks for of device plugins (`needs`, as NeedsOf of
/// device/pod_needs.h), and, once the pod is Ready, of claims, must be what the
/// ledger gave it. Admits, also a pod that is neither Ready nor being prepared;
/// or rejects in the kubelet's words. Devices that are held the other way, by a
/// claim or through a plugin, are no change: the pod was admitted when another
/// feature gate held. What a container does not ask for any more is none
/// either.
Verdict CheckUnchanged(const Pod& pod, const state::PodRecord& record,
                       const std::vector<device::DeviceNeed>& needs,
                       const state::State& state, const ObjectSnapshot& objects,
                       const claim::PlanOptions& options,
                       const DevicePolicy& policy);

}  // namespace devmgr::admission
