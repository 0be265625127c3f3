// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "admission/aligned_plan.h"
#include "admission/pod_aligner.h"
#include "claim/device_plan.h"
#include "device/selection.h"

namespace devmgr::admission {

/// What stands in the way of a pod that is refused `now`, and would not be if
/// `possible` were so: what is held is free there, and what does not work may
/// work. One shortage per resource; one at least. Of the sets of NUMA nodes on
/// which the refused container could be, the one that lacks the fewest devices
/// counts.
std::vector<device::Shortage> ObstaclesOf(const claim::PluginDevices& devices,
                                          const claim::WantedDevices& wanted,
                                          const AlignmentRules& rules,
                                          const PodAligner& now,
                                          const PodAligner& possible);

}  // namespace devmgr::admission
