// SPDX-License-Identifier: Apache-2.0
#include "control/held_elsewhere.h"

#include <fmt/core.h>

#include <set>
#include <tuple>
#include <utility>

namespace devmgr::control {

void HeldElsewhere::Judge(const state::DeviceKey& device,
                          const device::Hardware& hardware) {
  const claim::HardwareTaker any_pod{std::get<0>(device), {}, {}};
  if (claim::FindHardwareHolder(state_, hardware, any_pod).has_value()) {
    devices_.insert_or_assign(device, hardware);
  } else {
    devices_.erase(device);
  }
}

void HeldElsewhere::FollowState(const state::State& state,
                                const claim::PublishedHardware& published) {
  const auto judge = [this](const state::DeviceKey& device,
                            const device::Hardware& hardware) {
    Judge(device, hardware);
  };
  // Texts: what they stand in may go with the state before.
  std::set<device::PhysicalIdentity> changed;
  state.hardware_holdings.VisitChangesSince(
      state_.hardware_holdings, [&](const auto* was, const auto* is) {
        changed.insert(*(was != nullptr ? was : is)->identity);
      });
  state_ = state;
  if (version_ != published.version()) {
    version_ = published.version();
    devices_.clear();
    published.VisitDevices(judge);
    return;
  }
  for (const device::PhysicalIdentity& identity : changed) {
    published.VisitDevicesWith(identity, judge);
  }
}

HeldElsewhere::Devices HeldElsewhere::Follow(
    const state::State& state, const claim::PublishedHardware& published,
    const allocator::AllocatedState& held, const PodUid& pod) {
  Devices devices{held, {}};
  if (published.empty()) {
    // Records that have changed since would stay for it.
    *this = {};
    version_ = published.version();
    return devices;
  }
  FollowState(state, published);
  for (const auto& [key, hardware] : devices_) {
    const auto& [driver, pool, device] = key;
    auto holder = claim::FindHardwareHolder(state, hardware, {driver, pod, {}});
    if (!holder.has_value() || held.Find({driver, pool, device}) != nullptr) {
      continue;
    }
    ObjectMeta claim;
    claim.name = fmt::format("hardware {}", devices.holders.size());
    claim.uid = claim.name;
    AllocationResult allocation;
    DeviceRequestAllocationResult& result = allocation.results.emplace_back();
    result.driver = driver;
    result.pool = pool;
    result.device = device;
    devices.held.Add(claim, allocation);
    devices.holders.emplace(claim.FullName().ToString(), *std::move(holder));
  }
  return devices;
}

}  // namespace devmgr::control
