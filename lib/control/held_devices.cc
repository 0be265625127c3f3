// SPDX-License-Identifier: Apache-2.0
#include "control/held_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <tuple>
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

/// Adds to a hash: FNV-1a, with what ends the text.
void Mix(std::string_view text, std::uint64_t* hash) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  for (const char c : text) {
    *hash = (*hash ^ static_cast<unsigned char>(c)) * kPrime;
  }
  *hash = (*hash ^ 0xff) * kPrime;
}

/// What the result takes of its device, whatever claim it is of.
std::uint64_t HashOf(const DeviceRequestAllocationResult& result) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string* text :
       {&result.driver, &result.pool, &result.device}) {
    Mix(*text, &hash);
  }
  Mix(result.share_id.empty() ? "whole" : "share", &hash);
  for (const auto& [name, amount] : result.consumed_capacity) {
    Mix(name.view(), &hash);
    Mix(fmt::format("{}.{}", amount.whole, amount.nanos), &hash);
  }
  return hash;
}

std::uint64_t HashOf(const state::DeviceCounters& counters) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto& [driver, pool, device] = counters.device;
  for (const std::string* text : {&driver, &pool, &device}) Mix(*text, &hash);
  for (const auto& [name, amount] : counters.counters) {
    Mix(name.first, &hash);
    Mix(name.second, &hash);
    Mix(fmt::format("{}.{}", amount.whole, amount.nanos), &hash);
  }
  return hash;
}

}  // namespace

void HeldDevices::Count(const ResourceClaim& claim,
                        const state::LocalClaimRecord* local) {
  auto& counted = counted_[claim.metadata.uid];
  for (const auto& result : claim.status.allocation->results) {
    if (result.admin_access) continue;
    counted.emplace_back(result.driver, HashOf(result));
  }
  if (local != nullptr) {
    for (const state::DeviceCounters& counters : local->counters) {
      counted.emplace_back(std::get<0>(counters.device), HashOf(counters));
    }
  }
  for (const auto& [driver, hash] : counted) sums_[driver] += hash;
}

void HeldDevices::Discount(const std::string& uid) {
  const auto counted = counted_.find(uid);
  if (counted == counted_.end()) return;
  for (const auto& [driver, hash] : counted->second) {
    const auto sum = sums_.find(driver);
    sum->second -= hash;
    if (sum->second == 0) sums_.erase(sum);
  }
  counted_.erase(counted);
}

std::uint64_t HeldDevices::SumOf(const std::string& driver) const {
  if (driver != WaitingFor::kAnyDriver) {
    const auto found = sums_.find(driver);
    return found != sums_.end() ? found->second : 0;
  }
  std::uint64_t sum = 0;
  for (const auto& [name, part] : sums_) sum += part;
  return sum;
}

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

/// As it is shown. Another claim may be shown under its name by now: then as
/// this node allocated it. Null: neither.
std::shared_ptr<const ResourceClaim> HeldDevices::ObjectOf(
    const state::State& state, const std::string& uid) const {
  const auto shown = by_uid_.find(uid);
  if (shown != by_uid_.end()) return shown->second;
  const state::LocalClaimRecord* local =
      state.FindLocalClaim(state::LocalClaimUid{uid});
  return local != nullptr ? local->object : nullptr;
}

std::shared_ptr<const ResourceClaim> HeldDevices::Holding(
    const state::State& state, const std::string& uid) const {
  const std::shared_ptr<const ResourceClaim> object = ObjectOf(state, uid);
  const bool is_allocated =
      object != nullptr && object->status.allocation.has_value();
  const state::ClaimRecord* record = state.FindClaim(ClaimUid{uid});
  std::vector<DeviceRequestAllocationResult> missing;
  if (record != nullptr) {
    missing = is_allocated
                  ? Missing(*record, object->status.allocation->results)
                  : Missing(*record, {});
  }
  if (missing.empty()) return is_allocated ? object : nullptr;
  auto claim = std::make_shared<ResourceClaim>();
  if (is_allocated) {
    *claim = *object;
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
      Discount(uid);
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
    Count(*claim, local);
    added_.emplace(uid, std::move(claim));
  }
  return held_;
}

}  // namespace devmgr::control
