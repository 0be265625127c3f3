// SPDX-License-Identifier: Apache-2.0
//
// The status of a pod as the agent of its node reports it.
#pragma once

#include <devmgr/object_meta.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// `state` or `lastState` of a container.
struct ReportedContainerState {
  enum class Kind { kNone, kWaiting, kRunning, kTerminated };
  Kind kind = Kind::kNone;
  std::string reason;   ///< CamelCase.
  std::string message;  ///< For people.
  // Of one that has begun.
  std::optional<WallTime> started_at;
  // Of one that has terminated.
  std::optional<WallTime> finished_at;
  std::int32_t exit_code = 0;
  std::string container_id;
  friend bool operator==(const ReportedContainerState&,
                         const ReportedContainerState&) = default;
};

/// An element of `containerStatuses` or `initContainerStatuses`.
struct ReportedContainerStatus {
  std::string name;
  ReportedContainerState state;
  ReportedContainerState last_state;
  bool ready = false;
  bool started = false;
  std::uint32_t restart_count = 0;
  std::string image;
  std::string image_id;
  std::string container_id;  ///< `containerd://ID`.
  /// `allocatedResourcesStatus`; times are not part of it.
  std::vector<ResourceStatus> allocated_resources;
  friend bool operator==(const ReportedContainerStatus&,
                         const ReportedContainerStatus&) = default;
};

/// What the agent of a node says of a pod. What it does not say stays as it is:
/// other conditions, statuses of claims, addresses of the host.
struct ReportedPodStatus {
  std::string phase;
  std::string reason;  ///< CamelCase; empty unless it failed as a whole.
  std::string message;
  std::optional<WallTime> start_time;
  std::int64_t observed_generation = 0;  ///< 0: the server knows none.
  std::vector<std::string> pod_ips;      ///< Empty: nothing is said of them.
  std::vector<Condition> conditions;
  std::vector<ReportedContainerStatus> init_containers;
  /// Empty, as of a pod that was rejected: nothing is said of containers.
  std::vector<ReportedContainerStatus> containers;
  friend bool operator==(const ReportedPodStatus&,
                         const ReportedPodStatus&) = default;
};

}  // namespace devmgr
