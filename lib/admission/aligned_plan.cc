// SPDX-License-Identifier: Apache-2.0
#include "admission/aligned_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "admission/alignment_obstacles.h"
#include "admission/pod_aligner.h"

namespace devmgr::admission {
namespace {

using device::Inventory;
using device::Shortage;

/// Its devices belong to it, or to its containers, already.
bool HasDevices(const claim::PluginDevices& devices, const PodUid& pod) {
  const auto& foreign = devices.state.foreign_holders;
  return !devices.reservations.OfPod(pod).empty() ||
         std::any_of(foreign.begin(), foreign.end(), [&](const auto& entry) {
           return entry.second->pod_uid == pod;
         });
}

/// The devices of these resources on the machine without any pod; `all_work`:
/// broken ones, too.
device::InventoryMap EmptyMachine(const claim::PluginDevices& devices,
                                  const claim::WantedDevices& wanted,
                                  bool all_work) {
  device::InventoryMap empty;
  for (const device::DeviceNeed& need : wanted.needs) {
    const auto inventory = devices.inventories.find(need.resource);
    if (inventory == devices.inventories.end() ||
        empty.contains(need.resource)) {
      continue;
    }
    std::vector<device::Device> list;
    for (const auto& known : inventory->second.devices()) {
      if (!known.listed) continue;
      list.push_back(known.device);
      const bool works = all_work || known.Usable();
      list.back().health =
          works ? device::Health::kHealthy : device::Health::kUnhealthy;
    }
    Inventory& without_pods = empty[need.resource];
    without_pods.Connect(1, 0);
    without_pods.Report(
        1, std::move(list), [](const DeviceId&) { return false; }, 0);
  }
  return empty;
}

/// Tells why a refused pod is refused.
class Refusal {
 public:
  Refusal(const claim::PluginDevices& devices,
          const claim::WantedDevices& wanted, const AlignmentInput& input,
          const PodAligner& now)
      : devices_(devices), wanted_(wanted), input_(input), now_(now) {}

  absl::Status Explain(AlignedPlan* result) {
    for (const bool all_work : {false, true}) {
      auto shortages = Obstacles(input_, all_work);
      if (!shortages.ok()) return shortages.status();
      if (!shortages->has_value()) continue;
      if (input_.choices) {
        // What is not lacking of device plugins is held by claims.
        std::erase_if(**shortages, [](const Shortage& one) {
          return one.available >= one.requested;
        });
        result->waits = true;
        result->possible = possible_;
      } else if ((*shortages)->empty()) {
        continue;
      }
      result->plan.shortages = **std::move(shortages);
      return absl::OkStatus();
    }
    if (input_.providers) {
      AlignmentInput without = input_;
      without.providers = nullptr;
      const auto shortages = Obstacles(without, /*all_work=*/true);
      if (!shortages.ok()) return shortages.status();
      if (shortages->has_value()) result->provider_refusal = Text();
    }
    result->plan.shortages = {Never()};
    return absl::OkStatus();
  }

  std::string Text() const {
    const auto& refused = now_.alignment().containers.back();
    return RefusalText(input_.rules.options, refused.lists, refused.merged);
  }

 private:
  /// What keeps the pod from what it would have on the machine without other
  /// pods; nothing: it is refused there, too.
  absl::StatusOr<std::optional<std::vector<Shortage>>> Obstacles(
      const AlignmentInput& now, bool all_work) {
    const AlignmentInput input = WithoutOtherPods(now);
    const device::InventoryMap inventories =
        EmptyMachine(devices_, wanted_, all_work);
    const device::ReservationTable no_pods;
    const claim::PluginDevices empty{devices_.state, inventories, no_pods,
                                     devices_.sharing};
    PodAligner possible(empty, wanted_, input);
    if (absl::Status status = possible.Align(); !status.ok()) return status;
    if (!possible.admitted()) return std::nullopt;
    for (const auto& one : possible.alignment().containers) {
      if (one.container == now_.alignment().containers.back().container) {
        possible_ = one.merged.hint.nodes;
      }
    }
    auto obstacles =
        ObstaclesOf(devices_, wanted_, input_.rules, now_, possible);
    // What does not work is in the way only where that has to work.
    if (all_work) return obstacles;
    for (Shortage& one : obstacles) one.devices.clear();
    return obstacles;
  }

  /// Claims could have other devices there: those that are allocated, too, if
  /// no other pod had them.
  static AlignmentInput WithoutOtherPods(const AlignmentInput& now) {
    AlignmentInput empty = now;
    empty.choices = now.choices_when_empty;
    if (!now.claims) return empty;
    empty.claims = [claims = now.claims](const ContainerName& container)
        -> absl::StatusOr<std::vector<topology::ResourceHints>> {
      auto lists = claims(container);
      if (!lists.ok()) return lists.status();
      std::erase_if(*lists, [](const auto& list) { return list.binding; });
      return lists;
    };
    return empty;
  }

  Shortage Never() const {
    Shortage never{.kind = Shortage::Kind::kNeverAligned,
                   .state = device::EndpointState::kLive};
    never.container = now_.alignment().containers.back().container;
    never.pod = wanted_.pod;
    never.reason = Text();
    const auto needs = now_.WantedBy(never.container);
    if (!needs.empty()) never.resource = needs.begin()->first;
    return never;
  }

  const claim::PluginDevices& devices_;
  const claim::WantedDevices& wanted_;
  const AlignmentInput& input_;
  const PodAligner& now_;
  std::optional<NumaMask> possible_;
};

}  // namespace

std::vector<ContainerName> ContainersOf(const Pod& pod) {
  std::vector<ContainerName> names;
  for (const Container& one : pod.spec.init_containers) {
    names.emplace_back(one.name);
  }
  for (const Container& one : pod.spec.containers) names.emplace_back(one.name);
  return names;
}

absl::StatusOr<AlignedPlan> PlanAligned(const claim::PluginDevices& devices,
                                        const claim::WantedDevices& wanted,
                                        const AlignmentInput& input) {
  AlignedPlan result;
  result.plan = claim::PlanDevices(devices, wanted);
  const bool wants_none =
      result.plan.reservations.empty() && !input.providers && !input.choices;
  if (!input.rules.IsOn() || !result.plan.shortages.empty() || wants_none ||
      HasDevices(devices, wanted.pod)) {
    return result;
  }
  PodAligner aligner(devices, wanted, input);
  if (absl::Status status = aligner.Align(); !status.ok()) return status;
  PodAlignmentInfo info = aligner.Info();
  if (aligner.admitted()) {
    claim::WantedDevices aligned = wanted;
    aligned.masks = aligner.Masks();
    result.plan = claim::PlanDevices(devices, aligned);
  } else {
    result.plan = {};
    Refusal refusal(devices, wanted, input, aligner);
    if (absl::Status status = refusal.Explain(&result); !status.ok()) {
      return status;
    }
    info.message = refusal.Text();
  }
  result.alignment = std::make_shared<const PodAlignmentInfo>(std::move(info));
  return result;
}

}  // namespace devmgr::admission
