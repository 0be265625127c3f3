// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// A device plugin is connected that has to be asked before each start of a
/// container (PreStartContainer), or has not: what containers hold of its
/// resource keeps that, for starts while the plugin is away. It may be another
/// plugin than the one that gave the devices, or the first one for devices that
/// were imported. Nothing when all is kept so already.
state::Decision RecordPreStart(const state::State& state,
                               const ResourceName& resource, bool required);

}  // namespace devmgr::claim
