// SPDX-License-Identifier: Apache-2.0
#include "device/health_policy.h"

#include <algorithm>

namespace devmgr::device {

std::vector<FaultyDevice> FaultyDevices(const Inventory& inventory,
                                        const ReservationTable::HeldIds& held,
                                        bool unknown_is_unhealthy) {
  std::vector<FaultyDevice> faulty;
  for (const auto& [id, holder] : held) {
    const InventoryDevice* known = inventory.Find(id);
    if (known == nullptr) continue;
    const Health health = known->device.health;
    const bool counts = health == Health::kUnhealthy ||
                        (health == Health::kUnknown && unknown_is_unhealthy);
    if (!counts) continue;
    faulty.push_back({holder.pod, id, known->since_ms});
  }
  return faulty;
}

std::int64_t HealthGuard::DueAt(const FaultyDevice& device) const {
  return std::max(device.since_ms + unhealthy_for_ms_, not_before_ms_);
}

HealthGuard::Ruling HealthGuard::Judge(const std::vector<FaultyDevice>& faulty,
                                       std::size_t held, std::int64_t now_ms) {
  std::erase_if(failed_, [&](const PodUid& pod) {
    return std::none_of(faulty.begin(), faulty.end(),
                        [&](const auto& device) { return device.pod == pod; });
  });
  Ruling ruling;
  const bool most = faulty.size() > 1 && faulty.size() * 2 > held;
  if (most &&
      now_ms >= held_since_ms_.value_or(now_ms - kHoldAgainMs) + kHoldAgainMs) {
    held_since_ms_ = now_ms;
    not_before_ms_ = std::max(not_before_ms_, now_ms + kHoldMs);
    ruling.holds_back = true;
  }

  const FaultyDevice* first = nullptr;
  for (const FaultyDevice& device : faulty) {
    if (failed_.contains(device.pod)) continue;
    if (first == nullptr || device.since_ms < first->since_ms) first = &device;
  }
  if (first == nullptr) return ruling;
  if (DueAt(*first) > now_ms) {
    ruling.next_ms = DueAt(*first);
    return ruling;
  }
  ruling.fail = *first;
  failed_.insert(first->pod);
  not_before_ms_ = now_ms + kPauseMs;
  const bool more = std::any_of(
      faulty.begin(), faulty.end(),
      [&](const auto& device) { return !failed_.contains(device.pod); });
  if (more) ruling.next_ms = not_before_ms_;
  return ruling;
}

}  // namespace devmgr::device
