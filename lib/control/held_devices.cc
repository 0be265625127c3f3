// SPDX-License-Identifier: Apache-2.0
#include "control/held_devices.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace devmgr::control {
namespace {

using allocator::DeviceCharge;

bool Names(const std::vector<DeviceRequestAllocationResult>& results,
           const std::string& driver, const state::AllocatedDevice& device) {
  return std::any_of(results.begin(), results.end(), [&](const auto& result) {
    return result.driver == driver && result.pool == device.pool &&
           result.device == device.device;
  });
}

/// What drivers were given for the claim, where `results` lack it.
std::vector<DeviceRequestAllocationResult> Missing(
    const state::ClaimRecord& record,
    const std::vector<DeviceRequestAllocationResult>& results) {
  std::vector<DeviceRequestAllocationResult> missing;
  for (const auto& [driver, part] : record.drivers) {
    for (const state::AllocatedDevice& device : part.allocated) {
      // What is shared keeps nothing from others.
      if (device.shared || Names(results, driver, device)) continue;
      DeviceRequestAllocationResult& result = missing.emplace_back();
      result.driver = driver;
      result.pool = device.pool;
      result.device = device.device;
    }
  }
  return missing;
}

std::vector<DeviceCharge> ChargesOf(const state::LocalClaimRecord& record) {
  std::vector<DeviceCharge> charges;
  for (const state::DeviceCounters& counters : record.counters) {
    const auto& [driver, pool, device] = counters.device;
    charges.push_back({{driver, pool, device}, counters.counters});
  }
  return charges;
}

}  // namespace

std::set<std::string> HeldDevices::Touched(const state::State& state,
                                           const ObjectSnapshot& objects) {
  std::set<std::string> uids;
  objects.claims.VisitChangesSince(claims_,
                                   [&](const auto* was, const auto* is) {
                                     if (was != nullptr) {
                                       uids.insert(was->second->metadata.uid);
                                       by_uid_.erase(was->second->metadata.uid);
                                     }
                                     if (is != nullptr)
                                       uids.insert(is->second->metadata.uid);
                                   });
  // After those that went: another name may have the UID now.
  objects.claims.VisitChangesSince(
      claims_, [&](const auto* /*was*/, const auto* is) {
        if (is != nullptr) by_uid_[is->second->metadata.uid] = is->second;
      });
  const auto touch = [&](const auto* was, const auto* is) {
    uids.insert((was != nullptr ? was : is)->first.value);
  };
  state.claims.VisitChangesSince(booked_, touch);
  state.local_claims.VisitChangesSince(local_, touch);
  claims_ = objects.claims;
  booked_ = state.claims;
  local_ = state.local_claims;
  return uids;
}

std::shared_ptr<const ResourceClaim> HeldDevices::Holding(
    const state::State& state, const std::string& uid) const {
  const auto object = by_uid_.find(uid);
  const bool is_allocated =
      object != by_uid_.end() && object->second->status.allocation.has_value();
  const state::ClaimRecord* record = state.FindClaim(ClaimUid{uid});
  std::vector<DeviceRequestAllocationResult> missing;
  if (record != nullptr) {
    missing = is_allocated
                  ? Missing(*record, object->second->status.allocation->results)
                  : Missing(*record, {});
  }
  if (missing.empty()) return is_allocated ? object->second : nullptr;
  auto claim = std::make_shared<ResourceClaim>();
  if (is_allocated) {
    *claim = *object->second;
  } else {
    claim->metadata.ns = record->name.ns;
    claim->metadata.name = record->name.name;
    claim->metadata.uid = uid;
    claim->status.allocation.emplace();
  }
  auto& results = claim->status.allocation->results;
  results.insert(results.end(), missing.begin(), missing.end());
  return claim;
}

const allocator::AllocatedState& HeldDevices::Follow(
    const state::State& state, const ObjectSnapshot& objects) {
  for (const std::string& uid : Touched(state, objects)) {
    if (const auto old = added_.find(uid); old != added_.end()) {
      held_.Remove(old->second->metadata, *old->second->status.allocation);
      added_.erase(old);
    }
    auto claim = Holding(state, uid);
    if (claim == nullptr) continue;
    const state::LocalClaimRecord* local =
        state.FindLocalClaim(state::LocalClaimUid{uid});
    if (local != nullptr) {
      const std::vector<DeviceCharge> charges = ChargesOf(*local);
      held_.Add(*claim, &charges);
    } else {
      held_.Add(*claim);
    }
    added_.emplace(uid, std::move(claim));
  }
  return held_;
}

}  // namespace devmgr::control
