// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <functional>
#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// A pod that is Ready in this boot gives back those of its devices of plugins
/// for which `gives` is true, and its answer is without them. The decision has
/// no message yet; no changes: there are none.
///   NotFound            the pod is not known
///   FailedPrecondition  it is not Ready, or not in this boot
absl::StatusOr<state::Decision> GiveBack(
    const state::State& state, const PodUid& pod, const std::string& boot_id,
    const std::function<bool(const state::PodRecord& pod,
                             const state::DeviceHold& hold)>& gives);

}  // namespace devmgr::claim
