// SPDX-License-Identifier: Apache-2.0
//
// The entry of the room: what a node would decide about pods. Values in, values
// out; no clock, no thread.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/simulation.h>

#include "simulation/node_moment.h"

namespace devmgr::simulation {

/// As DeviceManager::Simulate, but for how many run at once: the caller sees to
/// that, and sets `request.stop` at the deadline.
absl::StatusOr<Simulation> Simulate(const NodeMoment& moment,
                                    const SimulationRequest& request);

}  // namespace devmgr::simulation
