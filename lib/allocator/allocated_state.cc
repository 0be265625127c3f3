// SPDX-License-Identifier: Apache-2.0
#include "allocator/allocated_state.h"

#include <algorithm>

namespace devmgr::allocator {
namespace {

using SharedCharge = std::shared_ptr<const CounterAmounts>;

PoolDeviceView DeviceOf(const DeviceRequestAllocationResult& result) {
  return {result.driver, result.pool, result.device};
}

bool IsSame(const SharedCharge& a, const SharedCharge& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

/// Of devices without counters.
const SharedCharge& NoCharge() {
  static const auto none = std::make_shared<const CounterAmounts>();
  return none;
}

SharedCharge ChargeOf(const DeviceRequestAllocationResult& result,
                      const std::vector<DeviceCharge>* charges) {
  if (charges == nullptr) return nullptr;
  CounterAmounts amounts;
  for (const DeviceCharge& charge : *charges) {
    if (PoolDeviceView(charge.device) != DeviceOf(result)) continue;
    for (const auto& [counter, quantity] : charge.counters) {
      Amount& amount = amounts[counter];
      amount = std::max(amount, AmountOf(quantity));
    }
  }
  return amounts.empty()
             ? NoCharge()
             : std::make_shared<const CounterAmounts>(std::move(amounts));
}

/// The largest amounts of all that is recorded.
SharedCharge LargestOf(const HeldDevice& device) {
  if (device.unrecorded > 0) return nullptr;
  if (device.recorded.empty()) return NoCharge();
  if (device.recorded.size() == 1) return device.recorded.front().charge;
  CounterAmounts most;
  for (const HeldDevice::Recorded& each : device.recorded) {
    for (const auto& [counter, amount] : *each.charge) {
      Amount& largest = most[counter];
      largest = std::max(largest, amount);
    }
  }
  return std::make_shared<const CounterAmounts>(std::move(most));
}

/// A holder with `charge` has come. The charge that equals it, if one is
/// recorded, takes its place.
void CountCharge(HeldDevice& device, SharedCharge& charge) {
  if (charge == nullptr) {
    ++device.unrecorded;
  } else if (!charge->empty()) {
    const auto same =
        std::find_if(device.recorded.begin(), device.recorded.end(),
                     [&](const auto& each) { return *each.charge == *charge; });
    if (same != device.recorded.end()) {
      ++same->holders;
      charge = same->charge;
    } else {
      device.recorded.push_back({charge, 1});
    }
  }
  device.charge = LargestOf(device);
}

/// A holder with `charge` has gone.
void DiscountCharge(HeldDevice& device, const SharedCharge& charge) {
  if (charge == nullptr) {
    --device.unrecorded;
  } else if (!charge->empty()) {
    const auto same =
        std::find_if(device.recorded.begin(), device.recorded.end(),
                     [&](const auto& each) { return each.charge == charge; });
    if (--same->holders == 0) device.recorded.erase(same);
  }
  device.charge = LargestOf(device);
}

/// Calls `visit` with what keeps a device from others. Of a claim that was read
/// in its old form, these are the devices that its handles name.
template <typename Visit>
void ForEachHeld(const AllocationResult& allocation, const Visit& visit) {
  for (const DeviceRequestAllocationResult& result : allocation.results) {
    if (!result.admin_access) visit(result);
  }
  if (!allocation.results.empty()) return;
  for (const auto& [driver, handle] : allocation.resource_handles) {
    if (!handle.structured) continue;
    for (const auto& named : handle.structured->results) {
      DeviceRequestAllocationResult result;
      result.driver = driver;
      result.pool = handle.structured->node_name;
      result.device = named.named_resource;
      visit(result);
    }
  }
}

/// What a share consumes is added, or with `sign` -1 taken off.
void Consume(HeldDevice& device, const DeviceRequestAllocationResult& result,
             int sign) {
  if (result.share_id.empty()) return;
  for (const auto& [name, quantity] : result.consumed_capacity) {
    const auto total = device.consumed.try_emplace(name.str()).first;
    total->second += sign * AmountOf(quantity);
    if (total->second == 0) device.consumed.erase(total);
  }
}

Holder& EditHolder(HeldDevice& device, const HolderIdView& id) {
  return device.holders.Edit(id, [&] { return id.Copy(); });
}

bool operator==(const Holder& a, const Holder& b) {
  return a.claim == b.claim && a.results == b.results &&
         IsSame(a.charge, b.charge);
}

}  // namespace

bool operator==(const HeldDevice& a, const HeldDevice& b) {
  return a.holders.size() == b.holders.size() && a.whole == b.whole &&
         a.consumed == b.consumed && IsSame(a.charge, b.charge) &&
         std::equal(a.holders.begin(), a.holders.end(), b.holders.begin(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first &&
                             one.second == other.second;
                    });
}

void AllocatedState::Add(const ResourceClaim& claim,
                         const std::vector<DeviceCharge>* charges) {
  if (!claim.status.allocation) return;
  Add(claim.metadata, *claim.status.allocation, charges);
}

void AllocatedState::Add(const ObjectMeta& claim,
                         const AllocationResult& allocation,
                         const std::vector<DeviceCharge>* charges) {
  ForEachHeld(allocation, [&](const DeviceRequestAllocationResult& result) {
    AddResult(claim, result, ChargeOf(result, charges));
  });
}

void AllocatedState::AddResult(const ObjectMeta& claim,
                               const DeviceRequestAllocationResult& result,
                               std::shared_ptr<const CounterAmounts> charge) {
  HeldDevice& device = EditDevice(DeviceOf(result));
  Holder& holder = EditHolder(device, {claim.uid, result.share_id});
  if (holder.results++ == 0) {
    CountCharge(device, charge);
    holder.claim.ns = claim.ns;
    holder.claim.name = claim.name;
    holder.charge = std::move(charge);
  }
  if (result.share_id.empty()) ++device.whole;
  Consume(device, result, 1);
}

HeldDevice& AllocatedState::EditDevice(const PoolDeviceView& id) {
  HeldPool& pool = EditPool(id.Pool());
  return pool.Edit(id.device, [&] { return std::string(id.device); });
}

HeldPool& AllocatedState::EditPool(const PoolIdView& id) {
  return pools_.Edit(id, [&] { return id.Copy(); });
}

void AllocatedState::Remove(const ObjectMeta& claim,
                            const AllocationResult& allocation) {
  ForEachHeld(allocation, [&](const DeviceRequestAllocationResult& result) {
    RemoveResult(claim, result);
  });
}

void AllocatedState::RemoveResult(const ObjectMeta& claim,
                                  const DeviceRequestAllocationResult& result) {
  const PoolDeviceView id = DeviceOf(result);
  const HeldDevice* held = Find(id);
  if (held == nullptr) return;
  const HolderIdView holder{claim.uid, result.share_id};
  const Holder* known = held->holders.Find(holder);
  if (known == nullptr) return;
  if (held->holders.size() == 1 && known->results == 1) {
    EraseDevice(id);
    return;
  }
  HeldDevice& device = EditDevice(id);
  Holder& fewer = EditHolder(device, holder);
  if (--fewer.results == 0) {
    DiscountCharge(device, fewer.charge);
    device.holders.erase(holder);
  }
  if (result.share_id.empty()) --device.whole;
  Consume(device, result, -1);
}

void AllocatedState::EraseDevice(const PoolDeviceView& id) {
  HeldPool& pool = EditPool(id.Pool());
  pool.erase(id.device);
  if (pool.empty()) pools_.erase(id.Pool());
}

CounterAmounts AllocatedState::Charged(const PoolIdView& id) const {
  CounterAmounts charged;
  const HeldPool* pool = FindPool(id);
  if (pool == nullptr) return charged;
  for (const auto& [name, device] : *pool) {
    if (!device.charge) continue;
    for (const auto& [counter, amount] : *device.charge) {
      charged[counter] += amount;
    }
  }
  return charged;
}

}  // namespace devmgr::allocator
