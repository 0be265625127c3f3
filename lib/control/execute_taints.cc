// SPDX-License-Identifier: Apache-2.0
#include "control/execute_taints.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "allocator/taints.h"
#include "api/meta.h"

namespace devmgr::control {
namespace {

constexpr char kNoExecute[] = "NoExecute";

bool IsSameTaint(const DeviceTaint& a, const DeviceTaint& b) {
  return a.key == b.key && a.value == b.value && a.effect == b.effect;
}

/// A taint without a time counts since it was seen first, which `known` says.
ExecuteTaint Dated(const DeviceTaint& taint, std::string origin,
                   const std::vector<ExecuteTaint>& known,
                   std::int64_t now_ms) {
  ExecuteTaint dated{taint, now_ms, std::move(origin)};
  if (const auto added = api::UnixSecondsOf(taint.time_added)) {
    dated.since_ms = *added * 1'000;
    return dated;
  }
  const auto same =
      std::find_if(known.begin(), known.end(), [&](const ExecuteTaint& other) {
        return other.taint.time_added.empty() &&
               IsSameTaint(other.taint, taint);
      });
  if (same != known.end()) dated.since_ms = same->since_ms;
  return dated;
}

}  // namespace

ExecuteTaints::DeviceTaints ExecuteTaints::TaintsOf(const ResourceSlice& slice,
                                                    const ObjectName& name,
                                                    std::int64_t now_ms) const {
  static const std::vector<ExecuteTaint> kNone;
  const auto before = slices_.find(name);
  DeviceTaints taints;
  for (const SliceDevice& device : slice.devices) {
    for (const DeviceTaint& taint : device.taints) {
      if (taint.effect != kNoExecute) continue;
      const std::vector<ExecuteTaint>* known = &kNone;
      if (before != slices_.end()) {
        const auto same = before->second.devices.find(device.name);
        if (same != before->second.devices.end()) known = &same->second;
      }
      taints[device.name].push_back(
          Dated(taint, "ResourceSlice " + name.name, *known, now_ms));
    }
  }
  return taints;
}

bool ExecuteTaints::FollowSlice(const ObjectName& name,
                                const ResourceSlice* before,
                                const ResourceSlice* now, std::int64_t now_ms) {
  SliceTaints is;
  if (now != nullptr) {
    is = {{now->driver, now->pool},
          now->pool_generation,
          TaintsOf(*now, name, now_ms)};
    ++generations_[is.pool][now->pool_generation];
  }
  if (before != nullptr) {
    const auto pool = generations_.find({before->driver, before->pool});
    const auto count = pool->second.find(before->pool_generation);
    if (--count->second == 0) pool->second.erase(count);
    if (pool->second.empty()) generations_.erase(pool);
  }
  const auto was = slices_.find(name);
  const bool had_any = was != slices_.end();
  if (!had_any && is.devices.empty()) {
    // Its generation may make taints of other slices void, or valid again.
    return (now != nullptr && by_pool_.contains(is.pool)) ||
           (before != nullptr &&
            by_pool_.contains({before->driver, before->pool}));
  }
  if (had_any) {
    if (was->second == is) return false;
    const auto all = by_pool_.find(was->second.pool);
    all->second.erase(name);
    if (all->second.empty()) by_pool_.erase(all);
    slices_.erase(was);
  }
  if (!is.devices.empty()) {
    by_pool_[is.pool].insert(name);
    slices_[name] = std::move(is);
  }
  return true;
}

bool ExecuteTaints::FollowRule(const ObjectName& name,
                               std::shared_ptr<const DeviceTaintRule> now,
                               std::int64_t now_ms) {
  const auto was = rules_.find(name);
  if (now == nullptr || now->taint.effect != kNoExecute) {
    if (was == rules_.end()) return false;
    rules_.erase(was);
    return true;
  }
  std::vector<ExecuteTaint> known;
  if (was != rules_.end()) known.push_back(was->second.taint);
  ExecuteTaint taint =
      Dated(now->taint, "DeviceTaintRule " + name.name, known, now_ms);
  const bool same = was != rules_.end() && was->second.taint == taint &&
                    was->second.rule->device_selector == now->device_selector;
  rules_[name] = {std::move(now), std::move(taint)};
  return !same;
}

bool ExecuteTaints::Follow(const ObjectSnapshot& objects, std::int64_t now_ms) {
  bool changed = false;
  objects.resource_slices.VisitChangesSince(
      followed_slices_, [&](const auto* was, const auto* is) {
        const ResourceSlice* before =
            was != nullptr ? was->second.get() : nullptr;
        if (is != nullptr) {
          changed |= FollowSlice(is->first, before, is->second.get(), now_ms);
        } else if (was != nullptr) {
          changed |= FollowSlice(was->first, before, nullptr, now_ms);
        }
      });
  objects.device_taint_rules.VisitChangesSince(
      followed_rules_, [&](const auto* was, const auto* is) {
        if (is != nullptr) {
          changed |= FollowRule(is->first, is->second, now_ms);
        } else if (was != nullptr) {
          changed |= FollowRule(was->first, nullptr, now_ms);
        }
      });
  followed_slices_ = objects.resource_slices;
  followed_rules_ = objects.device_taint_rules;
  return changed;
}

std::vector<const ExecuteTaint*> ExecuteTaints::Of(
    const std::string& driver, const std::string& pool,
    const std::string& device) const {
  std::vector<const ExecuteTaint*> taints;
  const auto slices = by_pool_.find({driver, pool});
  if (slices != by_pool_.end()) {
    const std::int64_t newest = generations_.at(slices->first).rbegin()->first;
    for (const ObjectName& name : slices->second) {
      const SliceTaints& slice = slices_.at(name);
      const auto found = slice.devices.find(device);
      if (slice.generation != newest || found == slice.devices.end()) continue;
      for (const ExecuteTaint& taint : found->second) taints.push_back(&taint);
    }
  }
  for (const auto& [name, rule] : rules_) {
    if (allocator::Selects(*rule.rule, driver, pool, device)) {
      taints.push_back(&rule.taint);
    }
  }
  return taints;
}

}  // namespace devmgr::control
