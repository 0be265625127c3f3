// SPDX-License-Identifier: Apache-2.0
//
// Why a pod does not get its devices, in the words of devmgr/simulation.h.
#pragma once

#include <devmgr/simulation.h>

#include <set>
#include <vector>

#include "allocator/refusals.h"
#include "control/held_elsewhere.h"
#include "control/quota.h"
#include "device/selection.h"
#include "simulation/simulated_node.h"

namespace devmgr::simulation {

/// Whose devices are held: pods of this run, and others. Borrowed.
struct Holders {
  const SimulatedNode& node;
  const std::set<PodUid>& of_this_run;
};

/// Of one request of a claim; `elsewhere` is what is held by the hardware.
RefusedRequest PublicOf(const allocator::RequestRefusals& refused,
                        const control::HeldElsewhere::Holders& elsewhere,
                        const Holders& holders);

/// Of one resource of a plugin, for `pod`.
RefusedRequest PublicOf(const device::Shortage& shortage, const PodUid& pod,
                        const Holders& holders);

/// Of a quota, by key.
void AddRefusals(const control::QuotaExcess& excess,
                 std::vector<RefusedRequest>* refusals);

}  // namespace devmgr::simulation
