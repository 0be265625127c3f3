// SPDX-License-Identifier: Apache-2.0
//
// Which claims a pod has, whether it may use them, and what its containers
// want of them. Follows the kubelet's pkg/kubelet/cm/dra (manager.go,
// claiminfo.go) and the API's validation; differences are in
// docs/differences.md.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <functional>
#include <string>
#include <vector>

#include "state/state.h"

namespace devmgr::claim {

struct PlannedClaim {
  ClaimUid uid;
  ObjectName name;
  std::vector<std::string> drivers;  ///< Of its allocation; sorted, once each.
};

/// What has to be prepared for a pod, and who gets what.
struct PodPlan {
  std::vector<PlannedClaim> claims;  ///< In pod-claim order, once each.
  std::vector<state::ContainerNeed> needs;
};

struct PlanOptions {
  /// Feature gate DRAExtendedResource. Off: the special claim does not exist.
  bool extended_resources = true;
  /// Does a device plugin serve this extended resource? Null: none does any.
  std::function<bool(const std::string&)> served_by_plugin = nullptr;
};

/// A verdict, and with kAdmit the plan.
struct PlanResult {
  Verdict verdict;
  PodPlan plan;
};

/// Judges a pod by the objects alone; changes nothing. A rejection wins over a
/// wait; of several waits all are listed. A rejection says what would have to
/// change, too: a pod that holds claims can only wait for it.
PlanResult PlanPod(const Pod& pod, const ObjectSnapshot& objects,
                   const PlanOptions& options);

/// Adds what `problem` says to `verdict`: a rejection replaces waits, waits add
/// up.
void Worsen(Verdict& verdict, const Verdict& problem);

}  // namespace devmgr::claim
