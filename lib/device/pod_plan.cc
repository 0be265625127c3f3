// SPDX-License-Identifier: Apache-2.0
#include "device/pod_plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::device {
namespace {

using api::Quoted;

template <typename Map>
const typename Map::mapped_type* FindOrNull(const Map& map,
                                            const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// Plans one resource of the pod, container by container.
class ResourcePlanner {
 public:
  ResourcePlanner(const PlanInput& input, const ResourceName& resource)
      : input_(input),
        held_(input.reservations.Held(resource)),
        inventory_(FindOrNull(input.inventories, resource)) {
    for (const Reservation& has : input.reservations.OfPod(input.pod)) {
      if (has.resource != resource || has.kind == ContainerKind::kInit)
        continue;
      for (const HeldDevice& device : has.devices) exclusive_.insert(device.id);
    }
    ahead_ = exclusive_;
  }

  /// Goes on with the next container. After a shortage nothing is done.
  void Plan(const DeviceNeed& need) {
    if (shortage_.has_value()) return;
    const Reservation* has =
        input_.reservations.Find(input_.pod, need.container, need.resource);
    if (has != nullptr) {
      CheckHeld(need, *has);
      HandOn(need.kind, has->devices);
    } else if (need.count > 0) {
      Choose(need);
    }
  }

  const std::vector<Reservation>& reservations() const { return planned_; }
  const std::optional<PreferenceQuestion>& question() const {
    return question_;
  }
  const std::optional<Shortage>& shortage() const { return shortage_; }

 private:
  bool Live() const {
    return inventory_ != nullptr && inventory_->state() == EndpointState::kLive;
  }

  void Fail(const DeviceNeed& need, Shortage shortage) {
    shortage.container = need.container;
    shortage.resource = need.resource;
    shortage.pod = input_.pod;
    shortage_ = std::move(shortage);
  }

  void FailNotServed(const DeviceNeed& need) {
    Shortage shortage{.kind = Shortage::Kind::kNotServed,
                      .requested = need.count};
    if (inventory_ != nullptr) shortage.state = inventory_->state();
    Fail(need, std::move(shortage));
  }

  void CheckHeld(const DeviceNeed& need, const Reservation& has) {
    const auto size = static_cast<std::int64_t>(has.devices.size());
    if (size != need.count) {
      Fail(need, {.kind = Shortage::Kind::kChangedRequest,
                  .requested = need.count,
                  .available = size});
      return;
    }
    if (!input_.judge_held) return;
    if (!Live()) {
      if (!input_.trust_held) FailNotServed(need);
      return;
    }
    Shortage shortage{.kind = Shortage::Kind::kHeldUnhealthy,
                      .state = EndpointState::kLive,
                      .requested = need.count};
    for (const HeldDevice& device : has.devices) {
      const InventoryDevice* known = inventory_->Find(device.id);
      if (known != nullptr && known->Usable()) continue;
      if (shortage.devices.size() < Shortage::kMaxNames) {
        shortage.devices.push_back(device.id);
      }
    }
    if (!shortage.devices.empty()) Fail(need, std::move(shortage));
  }

  /// Devices of the pod that the container may use.
  IdSet ReusableFor(const DeviceNeed& need) const {
    IdSet reusable = reusable_;
    if (need.kind == ContainerKind::kInit) {
      reusable.insert(ahead_.begin(), ahead_.end());
    }
    if (const auto* adopted = FindOrNull(
            input_.adopted, NeedKey(need.container, need.resource))) {
      for (const DeviceId& id : *adopted) {
        if (!taken_.contains(id)) reusable.insert(id);
      }
    }
    return reusable;
  }

  void Choose(const DeviceNeed& need) {
    if (const auto* holders = FindOrNull(input_.claimed_by, need.resource);
        holders != nullptr && !holders->empty()) {
      Fail(need, {.kind = Shortage::Kind::kHeldByClaims,
                  .requested = need.count,
                  .holders = *holders});
      return;
    }
    if (const auto* reason = FindOrNull(input_.handed_over, need.resource);
        reason != nullptr && !reason->empty()) {
      Fail(need, {.kind = Shortage::Kind::kHandedOver,
                  .requested = need.count,
                  .reason = *reason});
      return;
    }
    if (!Live()) {
      FailNotServed(need);
      return;
    }
    const NeedKey key(need.container, need.resource);
    const IdSet reusable = ReusableFor(need);
    Selection selection =
        Select({.inventory = *inventory_,
                .held = held_,
                .pod = input_.pod,
                .count = need.count,
                .reusable = reusable,
                .planned = taken_,
                .mask = FindOrNull(input_.masks, key),
                .ask_preference = input_.asking.contains(need.resource),
                .preferred = FindOrNull(input_.preferences, key),
                .kept = FindOrNull(input_.kept, need.resource)});
    if (selection.shortage.has_value()) {
      Fail(need, std::move(*selection.shortage));
      return;
    }
    if (selection.question.has_value() && !question_.has_value()) {
      question_ = std::move(selection.question);
      question_->container = need.container;
      question_->resource = need.resource;
    }
    for (const HeldDevice& device : selection.devices) {
      taken_.insert(device.id);
    }
    HandOn(need.kind, selection.devices);
    planned_.push_back({.pod = input_.pod,
                        .container = need.container,
                        .kind = need.kind,
                        .resource = need.resource,
                        .devices = std::move(selection.devices)});
  }

  void HandOn(ContainerKind kind, const std::vector<HeldDevice>& devices) {
    for (const HeldDevice& device : devices) {
      if (kind != ContainerKind::kInit) {
        reusable_.erase(device.id);
        ahead_.erase(device.id);
      } else if (!exclusive_.contains(device.id)) {
        reusable_.insert(device.id);
      }
    }
  }

  const PlanInput& input_;
  const ReservationTable::HeldIds& held_;
  const Inventory* const inventory_;
  IdSet exclusive_;  ///< Held by sidecars and app containers of the pod.
  IdSet ahead_;      ///< Those of containers that are yet to come.
  IdSet reusable_;
  IdSet taken_;
  std::vector<Reservation> planned_;
  std::optional<PreferenceQuestion> question_;
  std::optional<Shortage> shortage_;
};

/// Reservations by resource, put into the order of the needs.
std::vector<Reservation> InOrderOf(const std::vector<DeviceNeed>& needs,
                                   std::vector<Reservation> reservations) {
  std::map<NeedKey, std::size_t> order;
  for (const DeviceNeed& need : needs) {
    order.emplace(NeedKey(need.container, need.resource), order.size());
  }
  std::sort(reservations.begin(), reservations.end(),
            [&](const Reservation& a, const Reservation& b) {
              return order[{a.container, a.resource}] <
                     order[{b.container, b.resource}];
            });
  return reservations;
}

}  // namespace

PodPlan PlanPod(const PlanInput& input) {
  std::map<ResourceName, ResourcePlanner> planners;
  for (const DeviceNeed& need : input.needs) {
    planners.try_emplace(need.resource, input, need.resource)
        .first->second.Plan(need);
  }
  PodPlan plan;
  for (const auto& [resource, planner] : planners) {
    plan.reservations.insert(plan.reservations.end(),
                             planner.reservations().begin(),
                             planner.reservations().end());
    if (planner.question().has_value()) {
      plan.questions.push_back(*planner.question());
    }
    if (planner.shortage().has_value()) {
      plan.shortages.push_back(*planner.shortage());
    }
  }
  if (!plan.shortages.empty()) {
    plan.reservations.clear();
    plan.questions.clear();
  }
  plan.reservations = InOrderOf(input.needs, std::move(plan.reservations));
  return plan;
}

absl::Status CheckStillFree(const std::vector<Reservation>& plan,
                            const HolderLookup& holder_of) {
  for (const Reservation& reservation : plan) {
    for (const HeldDevice& device : reservation.devices) {
      const PodUid* holder = holder_of(reservation.resource, device.id);
      if (holder == nullptr || *holder == reservation.pod) continue;
      return AbortedError("device {} of {} was taken by pod {} meanwhile",
                          Quoted(device.id), Quoted(reservation.resource),
                          Quoted(holder->value));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStillUsable(const std::vector<Reservation>& plan,
                              const InventoryMap& inventories) {
  for (const Reservation& reservation : plan) {
    const Inventory* inventory = FindOrNull(inventories, reservation.resource);
    for (const HeldDevice& device : reservation.devices) {
      const InventoryDevice* known =
          inventory == nullptr ? nullptr : inventory->Find(device.id);
      if (known != nullptr && known->Usable()) continue;
      return AbortedError("device {} of {} is not healthy any more",
                          Quoted(device.id), Quoted(reservation.resource));
    }
  }
  return absl::OkStatus();
}

}  // namespace devmgr::device
