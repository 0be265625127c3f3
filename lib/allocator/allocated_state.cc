// SPDX-License-Identifier: Apache-2.0
#include "allocator/allocated_state.h"

#include <algorithm>
#include <tuple>

namespace devmgr::allocator {
namespace {

PoolDevice DeviceOf(const DeviceRequestAllocationResult& result) {
  return {result.driver, result.pool, result.device};
}

auto OrderOf(const Holder& holder) {
  return std::tie(holder.claim_uid, holder.share_id);
}

std::optional<std::map<CounterName, Amount>> ChargeOf(
    const PoolDevice& device, const std::vector<DeviceCharge>* charges) {
  if (charges == nullptr) return std::nullopt;
  std::map<CounterName, Amount> amounts;
  for (const DeviceCharge& charge : *charges) {
    if (charge.device != device) continue;
    for (const auto& [counter, quantity] : charge.counters) {
      amounts[counter] = std::max(amounts[counter], AmountOf(quantity));
    }
  }
  return amounts;
}

/// What follows from the holders.
void Summarize(HeldDevice& device) {
  device.consumed.clear();
  device.charge.emplace();
  for (const Holder& holder : device.holders) {
    for (const auto& [name, amount] : holder.consumed) {
      device.consumed[name] += amount;
    }
    if (!holder.charge) {
      device.charge.reset();
    } else if (device.charge) {
      for (const auto& [counter, amount] : *holder.charge) {
        Amount& most = (*device.charge)[counter];
        most = std::max(most, amount);
      }
    }
  }
}

}  // namespace

bool HeldDevice::IsHeldWhole() const {
  return std::any_of(holders.begin(), holders.end(), [](const Holder& holder) {
    return holder.share_id.empty();
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
  for (const DeviceRequestAllocationResult& result : allocation.results) {
    if (result.admin_access) continue;
    const PoolDevice id = DeviceOf(result);
    Holder holder;
    holder.claim_uid = claim.uid;
    holder.share_id = result.share_id;
    holder.claim = claim.FullName();
    if (!result.share_id.empty()) {
      for (const auto& [name, quantity] : result.consumed_capacity) {
        holder.consumed[name.str()] = AmountOf(quantity);
      }
    }
    holder.charge = ChargeOf(id, charges);

    const HeldDevice* held = Find(id);
    HeldDevice device = held != nullptr ? *held : HeldDevice();
    const auto place =
        std::upper_bound(device.holders.begin(), device.holders.end(), holder,
                         [](const Holder& a, const Holder& b) {
                           return OrderOf(a) < OrderOf(b);
                         });
    device.holders.insert(place, std::move(holder));
    Put(id, std::move(device));
  }
}

void AllocatedState::Remove(const ObjectMeta& claim,
                            const AllocationResult& allocation) {
  for (const DeviceRequestAllocationResult& result : allocation.results) {
    if (result.admin_access) continue;
    const PoolDevice id = DeviceOf(result);
    const HeldDevice* held = Find(id);
    if (held == nullptr) continue;
    HeldDevice device = *held;
    const auto holder = std::find_if(
        device.holders.begin(), device.holders.end(), [&](const Holder& each) {
          return each.claim_uid == claim.uid &&
                 each.share_id == result.share_id;
        });
    if (holder == device.holders.end()) continue;
    device.holders.erase(holder);
    Put(id, std::move(device));
  }
}

std::map<CounterName, Amount> AllocatedState::Charged(
    const PoolId& pool) const {
  std::map<CounterName, Amount> charged;
  const PoolDevice first{pool.driver, pool.pool, ""};
  for (auto device = devices_.lower_bound(first);
       device != devices_.end() && device->first.Pool() == pool; ++device) {
    if (!device->second.charge) continue;
    for (const auto& [counter, amount] : *device->second.charge) {
      charged[counter] += amount;
    }
  }
  return charged;
}

void AllocatedState::Put(const PoolDevice& id, HeldDevice device) {
  if (device.holders.empty()) {
    devices_.erase(id);
    return;
  }
  Summarize(device);
  devices_.insert_or_assign(id, std::move(device));
}

}  // namespace devmgr::allocator
