// SPDX-License-Identifier: Apache-2.0
#include "allocator/trial.h"

#include <algorithm>
#include <utility>

namespace devmgr::allocator {

Trial::Trial(const Inventory& inventory, const Requests& requests,
             const Eligibility& eligibility, AttributeTable& attributes,
             CounterState counters)
    : inventory_(&inventory),
      requests_(&requests),
      eligibility_(&eligibility),
      attributes_(&attributes),
      counters_(std::move(counters)),
      uses_(inventory.devices().size()),
      counts_(requests.claims.size(), 0) {
  for (const Claim& claim : requests.claims) {
    constraints_.push_back(claim.constraints);
  }
}

bool Trial::IsTaken(const Request& request, DeviceNumber device) const {
  const Use& use = uses_[device];
  if (use.IsNone() || inventory_->devices()[device].is_shareable) return false;
  if (use.is_whole && !request.has_admin_access) return true;
  // Within a claim a device is not handed out twice, with admin access neither.
  return std::any_of(chosen_.begin(), chosen_.end(), [&](const Chosen& each) {
    return each.device == device &&
           requests_->requests[each.request].claim == request.claim;
  });
}

Refusal Trial::Test(RequestNumber number, DeviceNumber device) const {
  const Request& request = requests_->requests[number];
  const Device& candidate = inventory_->devices()[device];
  if (PaysCounters(request, device)) {
    if (counters_.ForeignSet(candidate) != nullptr) {
      return Refusal::kCompatibilityGroup;
    }
    if (counters_.ShortOf(candidate) != nullptr) return Refusal::kCounter;
  }
  for (const auto& [each, attribute] : request.constraints) {
    const Constraint& constraint = constraints_[request.claim][each];
    if (!constraint.Admits(attributes_->Of(attribute, device))) {
      return Refusal::kConstraint;
    }
  }
  return HasRoom(number, device) ? Refusal::kNone : Refusal::kCapacity;
}

void Trial::Take(RequestNumber number, DeviceNumber device) {
  const Request& request = requests_->requests[number];
  auto& groups = groups_before_.emplace_back();
  if (PaysCounters(request, device)) {
    groups = counters_.Take(inventory_->devices()[device]);
  }
  for (const auto& [each, attribute] : request.constraints) {
    Constraint& constraint = constraints_[request.claim][each];
    constraint.Add(attributes_->Of(attribute, device));
  }
  Reserve(number, device);
  chosen_.push_back({number, device});
  ++counts_[request.claim];
}

void Trial::GiveBackLast() {
  const auto [number, device] = chosen_.back();
  const Request& request = requests_->requests[number];
  chosen_.pop_back();
  --counts_[request.claim];
  Free(number, device);
  for (const auto& each : request.constraints) {
    constraints_[request.claim][each.constraint].RemoveLast();
  }
  auto groups = std::move(groups_before_.back());
  groups_before_.pop_back();
  if (groups) {
    counters_.Return(inventory_->devices()[device], *std::move(groups));
  }
}

std::optional<RequestNumber> Trial::TakenBy(DeviceNumber device) const {
  for (const Chosen& each : chosen_) {
    if (each.device == device) return each.request;
  }
  return std::nullopt;
}

bool Trial::PaysCounters(const Request& request, DeviceNumber device) const {
  const Device& candidate = inventory_->devices()[device];
  return !request.has_admin_access &&
         !(candidate.counters.empty() && candidate.groups.empty()) &&
         eligibility_->Held(device) == nullptr && uses_[device].shares == 0;
}

bool Trial::HasRoom(RequestNumber number, DeviceNumber device) const {
  const Use& use = uses_[device];
  if (use.shares == 0 || requests_->requests[number].has_admin_access) {
    return true;  // Eligibility has compared it with what others hold.
  }
  const std::vector<Amount>& charges = eligibility_->Charges(number, device);
  const auto& capacity = inventory_->devices()[device].capacity;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (eligibility_->HeldCapacity(device, i) + use.reserved[i] + charges[i] >
        capacity[i].value) {
      return false;
    }
  }
  return true;
}

void Trial::Reserve(RequestNumber number, DeviceNumber device) {
  Use& use = uses_[device];
  if (requests_->requests[number].has_admin_access) {
    ++use.admins;
  } else if (!inventory_->devices()[device].is_shareable) {
    use.is_whole = true;
  } else {
    ++use.shares;
    const std::vector<Amount>& charges = eligibility_->Charges(number, device);
    use.reserved.resize(charges.size(), 0);
    for (std::size_t i = 0; i < charges.size(); ++i) {
      use.reserved[i] += charges[i];
    }
  }
}

void Trial::Free(RequestNumber number, DeviceNumber device) {
  Use& use = uses_[device];
  if (requests_->requests[number].has_admin_access) {
    --use.admins;
  } else if (!inventory_->devices()[device].is_shareable) {
    use.is_whole = false;
  } else {
    const std::vector<Amount>& charges = eligibility_->Charges(number, device);
    for (std::size_t i = 0; i < charges.size(); ++i) {
      use.reserved[i] -= charges[i];
    }
    if (--use.shares == 0) use.reserved.clear();
  }
}

}  // namespace devmgr::allocator
