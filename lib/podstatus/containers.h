// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>
#include <devmgr/pod_status.h>
#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <string>
#include <vector>

namespace devmgr::podstatus {

/// What the containers of a pod are judged by.
struct ContainerFacts {
  const Pod& pod;
  const PodInfo& info;
  const PodRun* run = nullptr;  ///< Null: the runtime has nothing of the pod.
  const ReportedPodStatus* former = nullptr;  ///< May be null.
  std::string runtime;                        ///< Its name: `containerd`.
};

/// Of init containers and sidecars, or of the others, in the order of the spec.
std::vector<ReportedContainerStatus> InitContainerStatuses(
    const ContainerFacts& facts);
std::vector<ReportedContainerStatus> AppContainerStatuses(
    const ContainerFacts& facts);

/// Of a pod that has ended: what is not known to have terminated counts as lost
/// where it may have run.
void EndContainers(const Pod& pod, ReportedPodStatus* status);

bool IsSidecar(const Container& container);
/// Null: there is none of that name.
const ReportedContainerStatus* FindStatus(
    const std::vector<ReportedContainerStatus>& statuses,
    const std::string& name);
bool HasStarted(const ReportedContainerStatus& container);

}  // namespace devmgr::podstatus
