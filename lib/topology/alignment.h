// SPDX-License-Identifier: Apache-2.0
//
// The hints of a pod's containers, one after the other or all at once, as the
// scope says. Follows scope_container.go and scope_pod.go of the kubelet's
// topology manager.
#pragma once

#include <devmgr/topology.h>
#include <devmgr/types.h>

#include <functional>
#include <string>
#include <vector>

#include "topology/merge.h"
#include "topology/policy.h"

namespace devmgr::topology {

/// A container, the hints there were for it, and what they came to.
struct AlignedContainer {
  ContainerName container;
  std::vector<ResourceHints> lists;
  MergedHint merged;
};

struct PodAlignment {
  bool admitted = true;
  /// In the order of the pod. Not admitted: the last one is refused, and those
  /// after it were not looked at. Under the scope pod each has the same lists
  /// and hint.
  std::vector<AlignedContainer> containers;
};

/// The hints of a container, or of all of a pod when it is empty. `before` is
/// what the containers before it were aligned to, whose devices are taken.
using HintSource = std::function<std::vector<ResourceHints>(
    const ContainerName& container,
    const std::vector<AlignedContainer>& before)>;

/// Aligns the containers of a pod: init containers first, then the others, each
/// once. Under Policy::kNone no hints are asked for.
PodAlignment AlignPod(const Options& options, const NumaMachine& machine,
                      const std::vector<ContainerName>& containers,
                      const HintSource& hints, const MergeLimits& limits = {});

}  // namespace devmgr::topology
