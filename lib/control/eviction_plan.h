// SPDX-License-Identifier: Apache-2.0
//
// Which pods have to leave their devices because of taints, and when.
// Follows the device taint eviction controller (pkg/controller/
// devicetainteviction), for claims that this node allocates.
#pragma once

#include <devmgr/host.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/execute_taints.h"
#include "state/state.h"

namespace devmgr::control {

/// Of the condition, the event and the pod.
inline constexpr char kDeletionByDeviceTaint[] = "DeletionByDeviceTaintManager";

/// Pods with a claim are to be evicted.
struct DueEviction {
  std::int64_t at_ms = 0;  ///< Unix time; at once when it is over.
  std::string message;     ///< For people: the device, its taint.
  friend bool operator==(const DueEviction&, const DueEviction&) = default;
};

/// When a taint that counts since `since_ms` is tolerated no more: at once
/// where no toleration covers it, else after the least `tolerationSeconds` of
/// those that do. Nothing: it is tolerated for ever.
std::optional<std::int64_t> ToleratedUntil(
    const DeviceTaint& taint, std::int64_t since_ms,
    const std::vector<DeviceToleration>& tolerations);

/// The earliest eviction over the devices of the claim and their taints, by the
/// tolerations in the results of its allocation. Nothing: there is none.
std::optional<DueEviction> EvictionOf(const ResourceClaim& claim,
                                      const ExecuteTaints& taints);

/// Follows taints and claims at a cost of what has changed, but for a change of
/// taints, which costs a look at each claim that this node allocated. Lives on
/// one thread.
class EvictionPlan {
 public:
  /// Takes in what the ledger and the source have now. Gives the claims that
  /// are to be left no more, since taints have gone.
  std::vector<ObjectName> Follow(const state::State& state,
                                 const ObjectSnapshot& objects,
                                 std::int64_t now_ms);

  /// Why a claim is to be had by no more pods; null: it is not to be evicted.
  const DueEviction* OfClaim(const state::LocalClaimUid& uid) const;

  /// The earliest for each pod that has such a claim, that has not been
  /// rejected or evicted, and is not giving up what it holds.
  std::map<PodUid, DueEviction> OfPods(const state::State& state) const;

 private:
  using Records = decltype(state::State::local_claims);

  void Put(const state::LocalClaimUid& uid,
           const state::LocalClaimRecord* record);

  ExecuteTaints taints_;
  Records followed_;
  std::map<state::LocalClaimUid, DueEviction> due_;
};

/// What a DeviceTaintRule selects, and what it would do with effect NoExecute.
struct RuleEffects {
  std::size_t published = 0;   ///< Devices that slices list.
  std::size_t allocated = 0;   ///< Devices of claims that this node allocated.
  std::size_t pods = 0;        ///< That would be evicted, sooner or later.
  std::size_t namespaces = 0;  ///< Of these pods.
  friend bool operator==(const RuleEffects&, const RuleEffects&) = default;
};

RuleEffects EffectsOf(const DeviceTaintRule& rule,
                      const ObjectMap<ResourceSlice>& slices,
                      const state::State& state);

/// `EvictionInProgress` of a rule with effect None, without times.
Condition DryRunCondition(const RuleEffects& effects);

}  // namespace devmgr::control
