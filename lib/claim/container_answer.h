// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>

#include <functional>
#include <memory>

#include "state/state.h"

namespace devmgr::claim {

using ClaimLookup = std::function<const state::ClaimRecord*(const ClaimUid&)>;

/// Which CDI device IDs each container of a pod gets (the kubelet's
/// GetResources), in pod-claim order, then driver, then answer order, each ID
/// once. Request names are compared by their base on both sides.
///   Internal  the pod wants a claim that has no record
absl::StatusOr<std::shared_ptr<const PodDevices>> AnswerFor(
    const state::PodRecord& pod, const ClaimLookup& claims);

}  // namespace devmgr::claim
