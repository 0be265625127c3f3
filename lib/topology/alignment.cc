// SPDX-License-Identifier: Apache-2.0
#include "topology/alignment.h"

#include <utility>

namespace devmgr::topology {
namespace {

AlignedContainer Align(const Options& options, const NumaMachine& machine,
                       std::vector<ResourceHints> lists,
                       const MergeLimits& limits) {
  AlignedContainer aligned;
  aligned.merged = Merge(options, machine, lists, limits);
  aligned.lists = std::move(lists);
  return aligned;
}

}  // namespace

PodAlignment AlignPod(const Options& options, const NumaMachine& machine,
                      const std::vector<ContainerName>& containers,
                      const HintSource& hints, const MergeLimits& limits) {
  PodAlignment pod;
  if (options.policy == Policy::kNone || containers.empty()) return pod;
  AlignedContainer whole;
  if (options.scope == Scope::kPod) {
    whole = Align(options, machine, hints({}, {}), limits);
  }
  for (const ContainerName& container : containers) {
    AlignedContainer aligned =
        options.scope == Scope::kPod
            ? whole
            : Align(options, machine, hints(container, pod.containers), limits);
    aligned.container = container;
    pod.containers.push_back(std::move(aligned));
    pod.admitted = pod.containers.back().merged.admitted;
    if (!pod.admitted) break;
  }
  return pod;
}

}  // namespace devmgr::topology
