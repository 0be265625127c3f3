// SPDX-License-Identifier: Apache-2.0
#include "control/eviction_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "allocator/taints.h"
#include "api/meta.h"
#include "common/counted.h"

namespace devmgr::control {
namespace {

/// Longer is as good as for ever, and does not overflow.
constexpr std::int64_t kMostSeconds = 1'000'000'000'000;

bool MayBeEvicted(const state::PodRecord& pod) {
  return pod.phase != state::PodPhase::kRejected &&
         pod.phase != state::PodPhase::kReleasing && !pod.eviction.has_value();
}

/// `key=value:NoExecute`.
std::string TaintText(const DeviceTaint& taint) {
  return fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=",
                     taint.value, taint.effect);
}

std::string TextOf(const ResourceClaim& claim,
                   const DeviceRequestAllocationResult& result,
                   const ExecuteTaint& taint, std::int64_t at_ms) {
  std::string text = fmt::format(
      "device {}/{}/{} of ResourceClaim {} has the taint {} of {} since {}",
      result.driver, result.pool, result.device,
      claim.metadata.FullName().ToString(), TaintText(taint.taint),
      taint.origin, api::TimestampOf(taint.since_ms));
  if (at_ms > taint.since_ms) {
    text += fmt::format(", which it tolerates for {} s",
                        (at_ms - taint.since_ms) / 1'000);
  }
  return text;
}

/// The pods for which the claim is reserved and that the ledger knows.
template <typename Visit>
void VisitPods(const ResourceClaim& claim, const state::State& state,
               Visit visit) {
  for (const ResourceClaimConsumer& consumer : claim.status.reserved_for) {
    const state::PodRecord* pod = state.FindPod(PodUid{consumer.uid});
    if (pod != nullptr && MayBeEvicted(*pod)) visit(*pod);
  }
}

}  // namespace

std::optional<std::int64_t> ToleratedUntil(
    const DeviceTaint& taint, std::int64_t since_ms,
    const std::vector<DeviceToleration>& tolerations) {
  bool is_covered = false;
  std::optional<std::int64_t> seconds;
  for (const DeviceToleration& toleration : tolerations) {
    if (!allocator::Tolerates(toleration, taint)) continue;
    is_covered = true;
    if (!toleration.toleration_seconds.has_value()) continue;
    const std::int64_t some = std::clamp<std::int64_t>(
        *toleration.toleration_seconds, 0, kMostSeconds);
    seconds = std::min(seconds.value_or(some), some);
  }
  if (!is_covered) return since_ms;
  if (!seconds.has_value()) return std::nullopt;
  return since_ms + *seconds * 1'000;
}

std::optional<DueEviction> EvictionOf(const ResourceClaim& claim,
                                      const ExecuteTaints& taints) {
  std::optional<DueEviction> first;
  if (!claim.status.allocation.has_value()) return first;
  for (const auto& result : claim.status.allocation->results) {
    for (const ExecuteTaint* taint :
         taints.Of(result.driver, result.pool, result.device)) {
      const auto at =
          ToleratedUntil(taint->taint, taint->since_ms, result.tolerations);
      if (!at.has_value() || (first.has_value() && first->at_ms <= *at)) {
        continue;
      }
      first = {*at, TextOf(claim, result, *taint, *at)};
    }
  }
  return first;
}

void EvictionPlan::Put(const state::LocalClaimUid& uid,
                       const state::LocalClaimRecord* record) {
  const auto due = record != nullptr ? EvictionOf(*record->object, taints_)
                                     : std::optional<DueEviction>();
  if (due.has_value()) {
    due_[uid] = *due;
  } else {
    due_.erase(uid);
  }
}

std::vector<ObjectName> EvictionPlan::Follow(const state::State& state,
                                             const ObjectSnapshot& objects,
                                             std::int64_t now_ms) {
  std::vector<ObjectName> ended;
  if (taints_.Follow(objects, now_ms)) {
    const auto before = std::exchange(due_, {});
    if (!taints_.empty()) {
      for (const auto& [uid, record] : state.local_claims) {
        Put(uid, record.get());
      }
    }
    for (const auto& [uid, due] : before) {
      const state::LocalClaimRecord* record = state.FindLocalClaim(uid);
      if (record == nullptr || due_.contains(uid)) continue;
      ended.push_back(record->object->metadata.FullName());
    }
  } else if (!taints_.empty()) {
    state.local_claims.VisitChangesSince(followed_,
                                         [&](const auto* was, const auto* is) {
                                           if (is != nullptr) {
                                             Put(is->first, is->second.get());
                                           } else if (was != nullptr) {
                                             Put(was->first, nullptr);
                                           }
                                         });
  }
  followed_ = state.local_claims;
  return ended;
}

const DueEviction* EvictionPlan::OfClaim(
    const state::LocalClaimUid& uid) const {
  const auto due = due_.find(uid);
  return due == due_.end() ? nullptr : &due->second;
}

std::map<PodUid, DueEviction> EvictionPlan::OfPods(
    const state::State& state) const {
  std::map<PodUid, DueEviction> pods;
  for (const auto& item : due_) {
    const DueEviction& due = item.second;
    const state::LocalClaimRecord* record = state.FindLocalClaim(item.first);
    if (record == nullptr) continue;
    VisitPods(*record->object, state, [&](const state::PodRecord& pod) {
      const auto [first, fresh] = pods.try_emplace(pod.uid, due);
      if (!fresh && due.at_ms < first->second.at_ms) first->second = due;
    });
  }
  return pods;
}

RuleEffects EffectsOf(const DeviceTaintRule& rule,
                      const ObjectMap<ResourceSlice>& slices,
                      const state::State& state) {
  using Device = std::tuple<std::string, std::string, std::string>;
  std::set<Device> published;
  for (const auto& [name, slice] : slices) {
    for (const SliceDevice& device : slice->devices) {
      if (allocator::Selects(rule, slice->driver, slice->pool, device.name)) {
        published.emplace(slice->driver, slice->pool, device.name);
      }
    }
  }
  DeviceTaint taint = rule.taint;
  taint.effect = "NoExecute";
  std::set<Device> allocated;
  std::set<PodUid> pods;
  std::set<std::string> namespaces;
  for (const auto& [uid, record] : state.local_claims) {
    const ResourceClaim& claim = *record->object;
    if (!claim.status.allocation.has_value()) continue;
    for (const auto& result : claim.status.allocation->results) {
      if (!allocator::Selects(rule, result.driver, result.pool,
                              result.device)) {
        continue;
      }
      allocated.emplace(result.driver, result.pool, result.device);
      if (!ToleratedUntil(taint, 0, result.tolerations).has_value()) continue;
      VisitPods(claim, state, [&](const state::PodRecord& pod) {
        pods.insert(pod.uid);
        namespaces.insert(pod.name.ns);
      });
    }
  }
  return {published.size(), allocated.size(), pods.size(), namespaces.size()};
}

Condition DryRunCondition(const RuleEffects& effects) {
  Condition condition;
  condition.type = "EvictionInProgress";
  condition.status = "False";
  condition.reason = "NoEffect";
  condition.message = fmt::format(
      "it selects {} and {}; with effect NoExecute {} in {} would be evicted",
      Counted(effects.published, "published device"),
      Counted(effects.allocated, "allocated device"),
      Counted(effects.pods, "pod"), Counted(effects.namespaces, "namespace"));
  return condition;
}

}  // namespace devmgr::control
