// SPDX-License-Identifier: Apache-2.0
#include "claim/replace_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "claim/give_back.h"
#include "common/status.h"

namespace devmgr::claim {

using state::DeviceHold;
using state::PodRecord;

bool HoldsAlone(const PodRecord& pod, const DeviceHold& hold) {
  return std::none_of(
      pod.holds.begin(), pod.holds.end(), [&](const DeviceHold& other) {
        if (other.container == hold.container || !other.Holds() ||
            other.resource != hold.resource) {
          return false;
        }
        return std::any_of(other.devices.begin(), other.devices.end(),
                           [&](const device::HeldDevice& device) {
                             return std::any_of(
                                 hold.devices.begin(), hold.devices.end(),
                                 [&](const device::HeldDevice& own) {
                                   return own.id == device.id;
                                 });
                           });
      });
}

absl::StatusOr<state::Decision> GiveBackFaulty(
    const state::State& state, const PodUid& uid,
    const ContainerName& container, const std::set<ResourceName>& resources,
    const std::string& boot_id) {
  std::vector<std::string> given_back;
  const auto gives = [&](const PodRecord& pod, const DeviceHold& hold) {
    if (hold.container != container || !resources.contains(hold.resource) ||
        !HoldsAlone(pod, hold)) {
      return false;
    }
    for (const device::HeldDevice& device : hold.devices) {
      given_back.push_back(
          fmt::format("{} of {}", device.id.value, hold.resource.value));
    }
    return true;
  };
  DEVMGR_ASSIGN_OR_RETURN(state::Decision decision,
                          GiveBack(state, uid, boot_id, gives));
  decision.kind = state::DecisionKind::kReplaced;
  if (decision.changes.empty()) return decision;
  decision.message = fmt::format(
      "container '{}' starts again and gives back what does not "
      "work: {}",
      container, fmt::join(given_back, ", "));
  return decision;
}

}  // namespace devmgr::claim
