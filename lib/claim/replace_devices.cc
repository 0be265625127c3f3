// SPDX-License-Identifier: Apache-2.0
#include "claim/replace_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "claim/container_answer.h"
#include "common/status.h"

namespace devmgr::claim {

using device::ReservationPhase;
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
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (old->phase != state::PodPhase::kReady || old->boot_id != boot_id) {
    return FailedPreconditionError("pod '{}' is not Ready in this boot",
                                   old->name.ToString());
  }
  auto record = std::make_shared<PodRecord>(*old);
  std::vector<std::string> given_back;
  for (DeviceHold& hold : record->holds) {
    if (hold.container != container || !resources.contains(hold.resource) ||
        hold.phase != ReservationPhase::kCommitted || !HoldsAlone(*old, hold)) {
      continue;
    }
    for (const device::HeldDevice& device : hold.devices) {
      given_back.push_back(
          fmt::format("{} of {}", device.id.value, hold.resource.value));
    }
    hold.phase = ReservationPhase::kReleased;
    hold.edits = {};
    hold.pre_start = false;
  }
  state::Decision decision;
  decision.kind = state::DecisionKind::kReplaced;
  if (given_back.empty()) return decision;
  DEVMGR_ASSIGN_OR_RETURN(record->answer,
                          AnswerFor(*record, [&](const ClaimUid& claim) {
                            return state.FindClaim(claim);
                          }));
  decision.message = fmt::format(
      "container '{}' starts again and gives back what does not "
      "work: {}",
      container, fmt::join(given_back, ", "));
  decision.pods = {record->name};
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

}  // namespace devmgr::claim
