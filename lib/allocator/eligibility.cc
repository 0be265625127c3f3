// SPDX-License-Identifier: Apache-2.0
#include "allocator/eligibility.h"

#include <fmt/format.h>

#include <algorithm>

#include "allocator/capacity.h"
#include "allocator/taints.h"
#include "common/status.h"

namespace devmgr::allocator {
namespace {

using Verdict = Eligibility::Verdict;

}  // namespace

Eligibility::Eligibility(const Inventory& inventory, const Holdings& holdings,
                         const Requests& requests, SelectorTable& selectors,
                         AttributeTable& attributes, const Options& options)
    : inventory_(inventory),
      holdings_(holdings),
      requests_(requests),
      selectors_(selectors),
      attributes_(attributes),
      options_(options),
      verdicts_(requests.requests.size() * inventory.devices().size(),
                Verdict::kUnknown) {}

Verdict Eligibility::Ask(RequestNumber request, DeviceNumber device) {
  absl::Status error;
  const Verdict verdict = AskAll(request, device, error);
  if (verdict == Verdict::kError) errors_[{request, device}] = error;
  verdicts_[PlaceOf(request, device)] = verdict;
  return verdict;
}

Verdict Eligibility::AskAll(RequestNumber number, DeviceNumber device,
                            absl::Status& error) {
  const Request& request = requests_.requests[number];
  const Device& candidate = inventory_.devices()[device];
  if (IsBusy(request, device) || candidate.is_hidden) return Verdict::kNo;
  Verdict verdict = Matches(request, device, error);
  if (verdict != Verdict::kYes) return verdict;
  verdict = FitsCapacity(number, device, error);
  if (verdict != Verdict::kYes) return verdict;
  if (!HasRoom(number, device) || !candidate.feature_off.empty()) {
    return Verdict::kNo;
  }
  // A device that is held has paid its counters.
  if (!request.has_admin_access && Held(device) == nullptr &&
      !holdings_.counters.Admits(candidate)) {
    return Verdict::kNo;
  }
  if (Untolerated(candidate.taints, request.spec->tolerations) != nullptr) {
    return Verdict::kNo;
  }
  if (!IsAdmitted(request, device)) return Verdict::kNo;
  return HasAttributes(request, device, error);
}

bool Eligibility::IsAdmitted(const Request& request,
                             DeviceNumber device) const {
  if (!options_.admits || request.has_admin_access) return true;
  const Device& candidate = inventory_.devices()[device];
  return options_.admits(request.claim, request.name, *candidate.slice,
                         *candidate.device);
}

Verdict Eligibility::IsPartOfAll(RequestNumber number, DeviceNumber device) {
  absl::Status error;
  const Request& request = requests_.requests[number];
  if (inventory_.devices()[device].is_hidden) return Verdict::kNo;
  Verdict verdict = Matches(request, device, error);
  if (verdict == Verdict::kYes) verdict = FitsCapacity(number, device, error);
  if (verdict == Verdict::kError) errors_[{number, device}] = error;
  return verdict;
}

bool Eligibility::MayHave(RequestNumber number, const std::string& driver) {
  const Request& request = requests_.requests[number];
  const auto may_match = [&](SelectorNumber selector) {
    return selectors_.MayMatch(selector, driver);
  };
  return std::all_of(request.class_selectors.begin(),
                     request.class_selectors.end(), may_match) &&
         std::all_of(request.selectors.begin(), request.selectors.end(),
                     may_match);
}

const std::vector<Amount>& Eligibility::Charges(RequestNumber request,
                                                DeviceNumber device) const {
  static const std::vector<Amount> none;
  const auto charges = charges_.find({request, device});
  return charges == charges_.end() ? none : charges->second;
}

Amount Eligibility::HeldCapacity(DeviceNumber device, std::size_t i) const {
  if (Held(device) == nullptr) return 0;
  const auto& consumed = Held(device)->consumed;
  const auto amount =
      consumed.find(inventory_.devices()[device].capacity[i].name);
  return amount == consumed.end() ? 0 : amount->second;
}

Verdict Eligibility::Matches(const Request& request, DeviceNumber device,
                             absl::Status& error) {
  const Verdict verdict = Matches(request, true, device, error);
  return verdict == Verdict::kYes ? Matches(request, false, device, error)
                                  : verdict;
}

Verdict Eligibility::Matches(const Request& request, bool of_class,
                             DeviceNumber device, absl::Status& error) {
  const auto& selectors =
      of_class ? request.class_selectors : request.selectors;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    switch (selectors_.Of(selectors[i], device)) {
      case SelectorTable::Verdict::kMatch:
        continue;
      case SelectorTable::Verdict::kError:
        break;
      default:
        return Verdict::kNo;
    }
    const absl::Status& status = selectors_.Error(selectors[i], device);
    const std::string text = fmt::format(
        "{} {}: selector #{} on device {}: {}", of_class ? "class" : "claim",
        of_class ? request.device_class->metadata.name
                 : requests_.claims[request.claim].Text(),
        i, inventory_.devices()[device].id.Text(), MessageOf(status));
    error = MakeStatus(status.code(), text);
    if (options_.selector_errors == SelectorErrors::kBadInput ||
        !selectors_.IsCompiled(selectors[i]) || absl::IsCancelled(status)) {
      return Verdict::kError;
    }
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
      warnings.push_back(text);
    }
    return Verdict::kNo;
  }
  return Verdict::kYes;
}

Verdict Eligibility::FitsCapacity(RequestNumber number, DeviceNumber device,
                                  absl::Status& error) {
  const Device& candidate = inventory_.devices()[device];
  const Request& request = requests_.requests[number];
  if (!inventory_.features().consumable_capacity) return Verdict::kYes;
  auto charges = ChargeAll(candidate.capacity, request.spec->capacity_requests);
  if (!charges.ok()) {
    error = WithContext(charges.status(),
                        "claim {}, request {}: checking capacity for device {}",
                        requests_.claims[request.claim].Text(), request.name,
                        candidate.id.Text());
    return Verdict::kError;
  }
  if (!*charges) return Verdict::kNo;
  if (!(*charges)->empty()) charges_[{number, device}] = **std::move(charges);
  return Verdict::kYes;
}

bool Eligibility::HasRoom(RequestNumber number, DeviceNumber device) const {
  if (requests_.requests[number].has_admin_access) return true;
  const std::vector<Amount>& charges = Charges(number, device);
  const auto& capacity = inventory_.devices()[device].capacity;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (HeldCapacity(device, i) + charges[i] > capacity[i].value) return false;
  }
  return true;
}

Verdict Eligibility::HasAttributes(const Request& request, DeviceNumber device,
                                   absl::Status& error) {
  const Claim& claim = requests_.claims[request.claim];
  for (const auto& [constraint, attribute] : request.constraints) {
    const Constraint& each = claim.constraints[constraint];
    const AttributeValues& values = attributes_.Of(attribute, device);
    if (values.state == AttributeValues::State::kError) {
      error = DerivedError(request, each, attribute, device);
      return Verdict::kError;
    }
    if (values.state == AttributeValues::State::kNoValue) {
      error = InvalidArgumentError(
          "claim {}, request {}: unsupported attribute value of '{}' on device "
          "{}",
          claim.Text(), request.name, each.attribute_name(),
          inventory_.devices()[device].id.Text());
      return Verdict::kError;
    }
    if (values.state == AttributeValues::State::kMissing) return Verdict::kNo;
  }
  return Verdict::kYes;
}

absl::Status Eligibility::DerivedError(const Request& request,
                                       const Constraint& constraint,
                                       std::size_t attribute,
                                       DeviceNumber device) const {
  const absl::Status& status = attributes_.Error(attribute, device);
  const std::string claim = requests_.claims[request.claim].Text();
  if (!attributes_.IsCompiled(attribute)) {
    return WithContext(
        status, "claim {}, request {}: compile derived attribute {} failed",
        claim, request.name, constraint.attribute_name());
  }
  return WithContext(
      status,
      "claim {}, request {}: evaluate derived attribute {} on device {} failed",
      claim, request.name, constraint.attribute_name(),
      inventory_.devices()[device].id.Text());
}

bool Eligibility::IsBusy(const Request& request, DeviceNumber device) const {
  const HeldDevice* held = Held(device);
  return held != nullptr && !request.has_admin_access &&
         (!inventory_.devices()[device].is_shareable || held->IsHeldWhole());
}

}  // namespace devmgr::allocator
