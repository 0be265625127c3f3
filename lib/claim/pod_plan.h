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

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "claim/backing.h"
#include "state/records.h"

namespace devmgr::claim {

/// Of a wait for a claim that may exist, and that cannot be read.
inline constexpr char kClaimNotFound[] = "ClaimNotFound";
inline constexpr char kClaimUnavailable[] = "ClaimUnavailable";

struct PlannedClaim {
  ClaimUid uid;
  ObjectName name;
  std::vector<std::string> drivers;  ///< Of its allocation; sorted, once each.
  /// Of drivers that do without calls for it; others are not there.
  std::map<std::string, state::SkippedOperations> skipped = {};
  bool network_attached = false;  ///< As in state::ClaimRecord.
  /// By driver; those without devices are not there.
  std::map<std::string, std::vector<state::AllocatedDevice>> devices = {};
  /// By driver, where the allocation has one.
  std::map<std::string, ResourceHandle> handles = {};
  /// How many pods may have it at once, where its API says so; 0: any number.
  std::size_t max_pods = 0;
};

/// What has to be prepared for a pod, and which container gets what.
struct PodPlan {
  std::vector<PlannedClaim> claims;  ///< In pod-claim order, once each.
  std::vector<state::ContainerNeed> needs;
  Sharing sharing = Sharing::kOneOwner;  ///< Of its extended resources.
};

struct PlanOptions {
  /// Feature gate DRAExtendedResource. Off: the special claim does not exist.
  bool extended_resources = true;
  /// Feature gate DRAWorkloadResourceClaims. Off: only pods own claims and have
  /// them reserved.
  bool pod_groups = false;
  /// Feature gate DRAOptionalNodeOperations. Off: a claim that asks for calls
  /// to be left out cannot be prepared.
  bool optional_operations = false;
  /// Why no device plugin serves this extended resource, for people; empty:
  /// one does. Null: none serves any.
  std::function<std::string(const ResourceName&)> why_not_served = nullptr;
  /// Of a name by a plugin and by claims.
  Sharing sharing = Sharing::kOneOwner;
  /// Kubernetes 1.26 and 1.27: a claim made for a pod whose status says nothing
  /// of any is known by its name, `<pod>-<pod claim>`, and its owner.
  bool claim_names_without_status = false;
  /// Of Kubernetes 1.30 and before: what was allocated goes to drivers as a
  /// handle, too.
  bool old_drivers = false;
  /// Which hardware a device is. Null: of none it is known.
  std::function<device::Hardware(const state::DeviceKey&)> hardware_of =
      nullptr;
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
