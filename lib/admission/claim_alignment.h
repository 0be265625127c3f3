// SPDX-License-Identifier: Apache-2.0
//
// NUMA alignment of claims: hints of those that are allocated, and what comes
// of aligning those that this node is about to allocate.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>
#include <devmgr/topology.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "admission/aligned_plan.h"
#include "admission/device_verdict.h"
#include "admission/kept_alignment.h"
#include "claim/pod_plan.h"
#include "device/selection.h"
#include "state/state.h"
#include "topology/merge.h"

namespace devmgr::admission {

/// Hints of the devices that the claims of a container have been allocated, by
/// their attribute `resource.kubernetes.io/numaNode`; of all containers when
/// the name is empty. Claims without an allocation have none. `resource` is the
/// entry of the pod as the container spells it, `gpu` or `gpu/request`; of the
/// claim for the pod's extended resources it is their name.
/// `is_local`: this node has allocated the claim, or is about to; its hints are
/// binding then. Null: it allocates none.
std::vector<topology::ResourceHints> HintsOfClaims(
    const Pod& pod, const ContainerName& container,
    const ObjectSnapshot& objects, const claim::PlanOptions& options,
    NumaMask machine,
    const std::function<bool(const ResourceClaim&)>& is_local = nullptr);

/// Whether this node has allocated `claim`, by the ledger's `state`, or would:
/// it has no allocation in the objects of `now`. Null: `claim` is one of these.
bool IsAllocatedHere(const ResourceClaim& claim, const state::State& state,
                     const ObjectSnapshot* now);

/// Hints of claims that this node is about to allocate, as AlignmentInput has
/// them.
struct ClaimHints {
  ChoiceHints now = {};
  ChoiceHints when_empty = {};
};

/// What stands for an empty name is of all containers that are not named.
using ClaimMasks = ContainerMasks;

/// What comes of aligning claims that are about to be allocated.
struct ClaimAlignment {
  /// kAdmit: devices of the nodes of `masks` are to be chosen, of any node for
  /// a container without an entry. Else why they are not to be allocated.
  Verdict verdict = {};
  /// Of a refused pod: of the containers before the refused one.
  ClaimMasks masks = {};
  /// It may only be preferred to choose so.
  bool is_best_effort = false;
  /// The container that is refused; empty under the scope `pod`.
  ContainerName refused = {};
  /// Of a wait: where devices that other claims hold are in the way. No value:
  /// on any nodes.
  std::optional<NumaMask> possible = std::nullopt;
};

/// What was aligned, without the verdict. A plan that was not aligned leaves
/// the choice as it is.
ClaimAlignment ClaimAlignmentOf(const AlignedPlan& aligned,
                                const AlignmentRules& rules);

/// What is in the way of a pod that was refused, one at least: where all
/// devices of plugins could be had, it is devices of claims.
std::vector<device::Shortage> InTheWayOf(const AlignedPlan& aligned);

/// The verdict on these, whose holders are named; `waited` as JudgeShortages
/// has it.
DeviceVerdict JudgeUnaligned(const AlignedPlan& aligned,
                             const std::vector<device::Shortage>& shortages,
                             const DevicePolicy& policy,
                             std::chrono::milliseconds waited);

}  // namespace devmgr::admission
