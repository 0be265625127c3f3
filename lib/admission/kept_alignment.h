// SPDX-License-Identifier: Apache-2.0
//
// What an admitted pod is aligned to, for what it gets later on: in place of
// devices that do not work, or of those that its init containers gave back.
#pragma once

#include <devmgr/topology.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "claim/device_plan.h"
#include "device/pod_plan.h"

namespace devmgr::admission {

using ContainerMasks = std::map<ContainerName, NumaMask>;

/// The nodes of each container; none of one that may be on any. Null: the pod
/// was not aligned.
ContainerMasks MasksOf(const PodAlignmentInfo* alignment);

/// The nodes on which the container has to be, by the policy that it was
/// admitted under. Nothing: it may be elsewhere.
std::optional<NumaMask> RequiredNodes(const PodAlignmentInfo* alignment,
                                      const ContainerName& container);
/// ` on NUMA node 1, to which container 'c' is aligned`; empty where it may be
/// elsewhere.
std::string RequiredNodesText(const PodAlignmentInfo* alignment,
                              const ContainerName& container);

/// Free devices of the resource on these nodes. All that are free, where no
/// device of the resource is on any node.
std::int64_t FreeDevicesOn(const claim::PluginDevices& devices,
                           const ResourceName& resource, NumaMask nodes);

/// Plans for a pod that was aligned so, and lacks devices. Those of the nodes
/// that it is aligned to come first; where it has to be on these and they have
/// too few, there is a shortage of the kind kNotAligned.
device::PodPlan PlanAsAligned(const claim::PluginDevices& devices,
                              claim::WantedDevices wanted,
                              const PodAlignmentInfo& alignment);

}  // namespace devmgr::admission
