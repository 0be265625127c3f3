// SPDX-License-Identifier: Apache-2.0
#include "allocator/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "allocator/capacity.h"
#include "allocator/taints.h"
#include "common/status.h"

namespace devmgr::allocator {
namespace {

std::string AmountText(Amount amount, const Quantity& like) {
  return amount < 0 ? "-" + ToQuantity(-amount, like).text.str()
                    : ToQuantity(amount, like).text.str();
}

/// One request on one device.
class Question {
 public:
  Question(const Failure& failure, const Trial& trial, RequestNumber number,
           DeviceNumber device)
      : failure_(failure),
        trial_(trial),
        request_(failure.requests.requests[number]),
        number_(device),
        device_(failure.inventory.devices()[device]) {}

  DeviceRefusal Answer() {
    DeviceRefusal refusal;
    refusal.device = device_.id.Copy();
    refusal.reason = First(refusal.detail);
    return refusal;
  }

 private:
  /// In the order of Refusal.
  Refusal First(std::string& detail) {
    using Test = Refusal (Question::*)(std::string&);
    for (const Test test :
         {&Question::Features, &Question::ClassSelectors,
          &Question::RequestSelectors, &Question::Holders, &Question::Counters,
          &Question::Taints, &Question::Constraints, &Question::Capacities,
          &Question::Admission}) {
      const Refusal refusal = (this->*test)(detail);
      if (refusal != Refusal::kNone) return refusal;
    }
    return Refusal::kNone;
  }

  Refusal Features(std::string& detail) {
    if (device_.is_hidden) {
      detail = "DRADeviceBindingConditions";
    } else {
      detail = device_.feature_off;
    }
    return detail.empty() ? Refusal::kNone : Refusal::kFeatureOff;
  }

  Refusal ClassSelectors(std::string& detail) {
    return Selectors(request_.class_selectors, Refusal::kClassSelector, detail);
  }
  Refusal RequestSelectors(std::string& detail) {
    return Selectors(request_.selectors, Refusal::kRequestSelector, detail);
  }
  Refusal Selectors(const std::vector<SelectorNumber>& selectors,
                    Refusal refusal, std::string& detail) {
    for (const SelectorNumber selector : selectors) {
      const auto verdict = failure_.selectors.Of(selector, number_);
      if (verdict == SelectorTable::Verdict::kMatch) continue;
      detail = failure_.selectors.Text(selector);
      if (verdict != SelectorTable::Verdict::kError) return refusal;
      detail += ": " + MessageOf(failure_.selectors.Error(selector, number_));
      return Refusal::kCelError;
    }
    return Refusal::kNone;
  }

  Refusal Holders(std::string& detail) {
    if (failure_.eligibility.IsBusy(request_, number_)) {
      detail = failure_.eligibility.Held(number_)
                   ->holders.begin()
                   ->second.claim.ToString();
      return Refusal::kBusy;
    }
    if (!trial_.IsTaken(request_, number_)) return Refusal::kNone;
    const Request& taker = failure_.requests.requests[*trial_.TakenBy(number_)];
    detail = failure_.requests.claims[taker.claim].Text() + ", request " +
             taker.name;
    return Refusal::kTakenInThisRun;
  }

  Refusal Counters(std::string& detail) {
    if (!trial_.PaysCounters(request_, number_)) return Refusal::kNone;
    if (const std::string* set = trial_.counters().ForeignSet(device_)) {
      detail = *set;
      return Refusal::kCompatibilityGroup;
    }
    const Counter* counter = trial_.counters().ShortOf(device_);
    if (counter == nullptr) return Refusal::kNone;
    Amount needed = 0;
    Quantity like;
    for (const DeviceCounterConsumption& use :
         device_.device->consumes_counters) {
      const Quantity* quantity = use.counters.Find(counter->name.second);
      if (use.counter_set != counter->name.first || quantity == nullptr) {
        continue;
      }
      needed += AmountOf(*quantity);
      like = *quantity;
    }
    detail = fmt::format(
        "{}/{}: needs {}, free {}", counter->name.first, counter->name.second,
        AmountText(needed, like),
        AmountText(trial_.counters().Left(device_.pool, *counter), like));
    return Refusal::kCounter;
  }

  Refusal Taints(std::string& detail) {
    const DeviceTaint* taint =
        Untolerated(device_.taints, request_.spec->tolerations);
    if (taint == nullptr) return Refusal::kNone;
    detail = taint->key + ':' + taint->effect;
    return Refusal::kTaint;
  }

  Refusal Constraints(std::string& detail) {
    for (const auto& [each, attribute] : request_.constraints) {
      const Constraint& constraint = trial_.ConstraintOf(request_.claim, each);
      const AttributeValues& values =
          failure_.attributes.Of(attribute, number_);
      if (constraint.Admits(values)) continue;
      detail = constraint.attribute_name();
      if (values.state == AttributeValues::State::kList) {
        detail += ": is a list";
      } else if (values.state != AttributeValues::State::kPresent) {
        detail += ": the device lacks it";
      } else {
        detail += fmt::format(": has {}, {} {}",
                              failure_.attributes.Text(values.values),
                              constraint.is_match() ? "needs" : "may not have",
                              failure_.attributes.Text(constraint.Present()));
      }
      return Refusal::kConstraint;
    }
    return Refusal::kNone;
  }

  Refusal Capacities(std::string& detail) {
    const auto& requests = request_.spec->capacity_requests;
    for (const auto& request : requests) {
      if (std::none_of(device_.capacity.begin(), device_.capacity.end(),
                       [&](const Capacity& each) {
                         return request.first == each.name;
                       })) {
        detail = request.first.str() + ": the device has none of that name";
        return Refusal::kCapacity;
      }
    }
    for (std::size_t i = 0; i < device_.capacity.size(); ++i) {
      const Capacity& capacity = device_.capacity[i];
      const Quantity* requested = requests.Find(capacity.name);
      const auto amount = Charge(capacity, requested);
      const Amount free = Free(i);
      if (amount && *amount <= free) continue;
      const Quantity& like = capacity.source->value;
      detail = amount ? fmt::format("{}: needs {}, free {}", capacity.name,
                                    AmountText(*amount, like),
                                    AmountText(free, like))
                      : fmt::format("{}: the policy has no amount for {}",
                                    capacity.name, requested->text.view());
      return Refusal::kCapacity;
    }
    return Refusal::kNone;
  }

  Refusal Admission(std::string& /*detail*/) {
    return failure_.eligibility.IsAdmitted(request_, number_) ? Refusal::kNone
                                                              : Refusal::kNuma;
  }

  Amount Free(std::size_t i) const {
    const Amount value = device_.capacity[i].value;
    if (request_.has_admin_access) return value;
    return value - failure_.eligibility.HeldCapacity(number_, i) -
           trial_.Reserved(number_, i);
  }

  const Failure& failure_;
  const Trial& trial_;
  const Request& request_;
  const DeviceNumber number_;
  const Device& device_;
};

void Count(RequestRefusals& refusals, DeviceRefusal refusal) {
  ++refusals.counts[refusal.reason];
  if (refusals.devices.size() < RequestRefusals::kMostListed) {
    refusals.devices.push_back(std::move(refusal));
  }
}

void AddLeftOut(const LeftOut& left_out, RequestRefusals& refusals) {
  for (const SliceDevice& device : left_out.slice->devices) {
    if (left_out.device != nullptr && left_out.device != &device) continue;
    Count(refusals,
          {{left_out.slice->driver, left_out.slice->pool, device.name},
           left_out.reason,
           left_out.detail});
  }
}

/// All devices but those that the request has.
RequestRefusals ExplainOne(const Failure& failure, const Trial& trial,
                           RequestNumber number) {
  const Request& request = failure.requests.requests[number];
  RequestRefusals refusals;
  refusals.claim = failure.requests.claims[request.claim].Text();
  refusals.request = request.name;
  refusals.wanted = request.wanted;
  std::vector<bool> is_own(failure.inventory.devices().size());
  for (const Chosen& each : trial.chosen()) {
    if (each.request != number) continue;
    is_own[each.device] = true;
    ++refusals.found;
  }
  for (DeviceNumber device = 0; device < is_own.size(); ++device) {
    if (is_own[device]) continue;
    Count(refusals, Question(failure, trial, number, device).Answer());
  }
  for (const LeftOut& each : failure.inventory.left_out()) {
    AddLeftOut(each, refusals);
  }
  return refusals;
}

}  // namespace

std::vector<RequestRefusals> ExplainRefusals(
    const Failure& failure, Trial& trial, const std::vector<Chosen>& furthest) {
  std::vector<RequestRefusals> all;
  const auto take = [&](RequestNumber number) {
    for (const Chosen& each : furthest) {
      if (each.request == number) trial.Take(number, each.device);
    }
  };
  for (const Claim& claim : failure.requests.claims) {
    for (const MainRequest& main : claim.requests) {
      const std::size_t before = trial.chosen().size();
      for (RequestNumber i = main.first; i < main.first + main.count; ++i) {
        take(i);
        all.push_back(ExplainOne(failure, trial, i));
        while (trial.chosen().size() > before) trial.GiveBackLast();
      }
      // Of one alternative, for the requests after it.
      for (RequestNumber i = main.first; i < main.first + main.count; ++i) {
        take(i);
      }
    }
  }
  while (!trial.chosen().empty()) trial.GiveBackLast();
  return all;
}

}  // namespace devmgr::allocator
