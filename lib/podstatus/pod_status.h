// SPDX-License-Identifier: Apache-2.0
//
// What the agent of a node says of a pod, from what the node knows of it. Pure.
// Follows the kubelet's pkg/kubelet/kubelet_pods.go and pkg/kubelet/status.
#pragma once

#include <devmgr/objects.h>
#include <devmgr/pod_status.h>
#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <optional>
#include <string>

namespace devmgr::podstatus {

/// Why a pod has to fail although its containers were admitted.
struct PodFailure {
  std::string reason;
  std::string message;
  /// Type of a condition that is True from then on; empty: none.
  std::string condition = {};
  friend bool operator==(const PodFailure&, const PodFailure&) = default;
};

/// What is known of a pod at one moment. Borrowed.
struct PodFacts {
  const Pod& pod;
  /// Null: the ledger has no place for it.
  const PodInfo* info = nullptr;
  /// Null: it is not to fail.
  const PodFailure* failure = nullptr;
  /// Null: no runtime is known.
  const RuntimeSnapshot* runtime = nullptr;
  /// What was said of it last; null: nothing, or it was forgotten.
  const ReportedPodStatus* former = nullptr;
  WallTime now;
};

/// What is to be said of the pod now. Nothing: what was said last stays, since
/// the runtime does not answer, nothing was decided about the pod yet, or it
/// has ended and all was said.
std::optional<ReportedPodStatus> StatusOf(const PodFacts& facts);

/// The object of the pod can go: its deletion was asked for, the server knows
/// that it has ended, nothing of it runs, and the ledger has no place for it.
bool IsFinished(const PodFacts& facts);

/// `Succeeded` or `Failed`.
bool IsTerminalPhase(const std::string& phase);

/// Null: the runtime has nothing of it.
const PodRun* RunOf(const RuntimeSnapshot& runtime, const PodUid& uid);

}  // namespace devmgr::podstatus
