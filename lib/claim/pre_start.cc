// SPDX-License-Identifier: Apache-2.0
#include "claim/pre_start.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace devmgr::claim {
namespace {

using state::DeviceHold;
using state::PodRecord;

/// While a plugin is asked for devices, its own answer will say it.
bool IsToChange(const DeviceHold& hold, const ResourceName& resource,
                bool required) {
  return hold.resource == resource && hold.pre_start != required &&
         hold.phase == device::ReservationPhase::kCommitted;
}

}  // namespace

state::Decision RecordPreStart(const state::State& state,
                               const ResourceName& resource, bool required) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kBacking;
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();
  for (const PodUid& uid : state.PluginHoldersOf(resource, kAll)) {
    const PodRecord& pod = *state.FindPod(uid);
    const auto is_to_change = [&](const DeviceHold& hold) {
      return IsToChange(hold, resource, required);
    };
    if (std::none_of(pod.holds.begin(), pod.holds.end(), is_to_change)) {
      continue;
    }
    auto changed = std::make_shared<PodRecord>(pod);
    for (DeviceHold& hold : changed->holds) {
      if (is_to_change(hold)) hold.pre_start = required;
    }
    decision.pods.push_back(changed->name);
    decision.changes.push_back(state::PutPod{std::move(changed)});
  }
  decision.message = fmt::format(
      "the device plugin of {} {} asked before each start of a "
      "container",
      resource, required ? "is to be" : "is not");
  return decision;
}

}  // namespace devmgr::claim
