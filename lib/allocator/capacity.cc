// SPDX-License-Identifier: Apache-2.0
#include "allocator/capacity.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::allocator {
namespace {

std::optional<Amount> InRange(const CapacityRange& range, Amount requested) {
  const Amount least = AmountOf(range.min);
  Amount amount = std::max(requested, least);
  const Amount step = range.step ? AmountOf(*range.step) : 0;
  if (step > 0) {
    amount = least + (amount - least + step - 1) / step * step;
  }
  if (range.max && amount > AmountOf(*range.max)) return std::nullopt;
  return amount;
}

std::optional<Amount> OneOf(const std::vector<Quantity>& values,
                            Amount requested) {
  for (const Quantity& value : values) {
    if (AmountOf(value) >= requested) return AmountOf(value);
  }
  return std::nullopt;
}

bool HasAmount(const Quantity* quantity, Amount amount) {
  return quantity != nullptr && AmountOf(*quantity) == amount;
}

}  // namespace

std::vector<Capacity> CapacitiesOf(const SliceDevice& device) {
  std::vector<Capacity> capacities;
  capacities.reserve(device.capacity.size());
  for (const auto& [name, capacity] : device.capacity) {
    capacities.push_back({name.view(), AmountOf(capacity.value), &capacity});
  }
  return capacities;
}

std::optional<Amount> Charge(const Capacity& capacity,
                             const Quantity* requested) {
  const CapacityRequestPolicy* policy = capacity.source->request_policy.get();
  if (requested == nullptr) {
    return policy != nullptr && policy->default_value
               ? AmountOf(*policy->default_value)
               : capacity.value;
  }
  const Amount amount = AmountOf(*requested);
  if (policy == nullptr) return amount;
  if (policy->valid_range) return InRange(*policy->valid_range, amount);
  if (!policy->valid_values.empty()) return OneOf(policy->valid_values, amount);
  return amount;
}

Quantity ChargedQuantity(const Capacity& capacity, const Quantity* requested,
                         Amount amount) {
  if (HasAmount(requested, amount)) return *requested;
  const CapacityRequestPolicy* policy = capacity.source->request_policy.get();
  if (policy == nullptr) return capacity.source->value;
  if (policy->default_value && requested == nullptr) {
    return *policy->default_value;
  }
  for (const Quantity& value : policy->valid_values) {
    if (HasAmount(&value, amount)) return value;
  }
  if (!policy->valid_range) return capacity.source->value;
  const CapacityRange& range = *policy->valid_range;
  if (HasAmount(&range.min, amount)) return range.min;
  return ToQuantity(amount, range.step ? *range.step : range.min);
}

absl::StatusOr<std::optional<std::vector<Amount>>> ChargeAll(
    const std::vector<Capacity>& capacities,
    const SortedMap<Quantity>& requests) {
  using Amounts = std::optional<std::vector<Amount>>;
  for (const auto& request : requests) {
    if (std::none_of(capacities.begin(), capacities.end(),
                     [&](const Capacity& capacity) {
                       return request.first == capacity.name;
                     })) {
      return Amounts();
    }
  }
  std::vector<Amount> amounts;
  amounts.reserve(capacities.size());
  bool is_served = true;
  for (const Capacity& capacity : capacities) {
    const auto amount = Charge(capacity, requests.Find(capacity.name));
    // Whatever the other capacities are, so that their order does not decide.
    if (amount && *amount < 0) {
      return InvalidArgumentError("capacity '{}' is negative", capacity.name);
    }
    is_served = is_served && amount && *amount <= capacity.value;
    amounts.push_back(amount.value_or(0));
  }
  return is_served ? Amounts(std::move(amounts)) : Amounts();
}

}  // namespace devmgr::allocator
