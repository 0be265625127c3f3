// SPDX-License-Identifier: Apache-2.0
#include "admission/device_request.h"

#include <utility>

#include "claim/device_booking.h"

namespace devmgr::admission {

DeviceNeeds NeedsOfBooked(const state::PodRecord& pod,
                          const std::string& boot_id) {
  if (pod.boot_id == boot_id) return {};
  return {claim::NeedsOfHolds(pod), false};
}

std::vector<device::DeviceNeed> WithoutGivenBack(
    std::vector<device::DeviceNeed> needs, const state::PodRecord* pod,
    const std::string& boot_id) {
  if (pod == nullptr || pod->boot_id != boot_id) return needs;
  for (const state::DeviceHold& hold : pod->holds) {
    if (hold.Holds()) continue;
    std::erase_if(needs, [&](const device::DeviceNeed& need) {
      return need.container == hold.container && need.resource == hold.resource;
    });
  }
  return needs;
}

WaitQueue::Place PlaceOf(const state::PodRecord* pod, std::int32_t priority,
                         const std::vector<device::DeviceNeed>& needs,
                         std::int64_t now_ms) {
  WaitQueue::Place place;
  place.priority = priority;
  place.first_seen_ms = pod != nullptr ? pod->first_seen_ms : now_ms;
  place.needs = device::EffectiveNeeds(needs);
  place.takes = pod == nullptr || pod->holds.empty();
  place.any_change = !place.takes;
  return place;
}

WaitQueue::Place ShortPlace(WaitQueue::Place place,
                            const std::vector<device::Shortage>& shortages) {
  using Kind = device::Shortage::Kind;
  for (const device::Shortage& shortage : shortages) {
    place.short_of.insert(shortage.resource);
    const bool others_hold =
        shortage.kind == Kind::kTooFewFree ||
        (shortage.kind == Kind::kNotAligned && shortage.devices.empty());
    place.any_change = place.any_change || !others_hold;
    place.aligned = place.aligned || shortage.kind == Kind::kNotAligned;
  }
  return place;
}

}  // namespace devmgr::admission
