// SPDX-License-Identifier: Apache-2.0
//
// Capacities of devices, and how requests for those of shared devices are
// rounded. Amounts are compared exactly, as decimals.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/device_parts.h"
#include "api/quantity.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

__extension__ using Int128 = __int128;

constexpr std::size_t kMaxValidValues = 10;

Int128 InNanos(const Quantity& quantity) {
  return static_cast<Int128>(quantity.whole) * 1'000'000'000 + quantity.nanos;
}

bool IsMore(const Quantity& a, const Quantity& b) { return Compare(a, b) > 0; }

void CheckAtMost(const Field& field, const Quantity& amount,
                 const Quantity& limit, std::string_view of) {
  if (!IsMore(amount, limit)) return;
  field.Error(fmt::format("{} is more than {}, {}", Quoted(amount.text),
                          limit.text.view(), of));
}

constexpr std::string_view kCapacity = "the value of the capacity";

void DecodeValidValues(const Field& list, const Quantity& value,
                       CapacityRequestPolicy& policy) {
  CheckCount(list, kMaxValidValues);
  for (const Field& item : list.Items()) {
    std::optional<Quantity> amount = RequiredAmount(item);
    if (!amount.has_value()) continue;
    CheckAtMost(item, *amount, value, kCapacity);
    if (!policy.valid_values.empty() &&
        !IsMore(*amount, policy.valid_values.back())) {
      item.Error(fmt::format("{} is not more than the one before, {}",
                             Quoted(amount->text),
                             policy.valid_values.back().text.view()));
    }
    policy.valid_values.push_back(*std::move(amount));
  }
  const auto& values = policy.valid_values;
  if (policy.default_value.has_value() && !values.empty() &&
      std::find(values.begin(), values.end(), *policy.default_value) ==
          values.end()) {
    list.Error(fmt::format("the default, {}, is none of them",
                           policy.default_value->text.view()));
  }
}

/// `amount` is a whole number of steps away from the range's begin.
void CheckStep(const Field& step, const CapacityRange& range,
               const Quantity& amount, std::string_view name) {
  if ((InNanos(amount) - InNanos(range.min)) % InNanos(*range.step) == 0)
    return;
  step.Error(fmt::format(
      "the {}, {}, is no whole number of steps of {} above {}", name,
      amount.text.view(), range.step->text.view(), range.min.text.view()));
}

void CheckDefault(const Field& field, const CapacityRange& range,
                  const Quantity& amount) {
  if (IsMore(range.min, amount)) {
    field.Error(fmt::format("{} is less than {}, the least of the range",
                            Quoted(amount.text), range.min.text.view()));
  }
  if (range.max.has_value()) {
    CheckAtMost(field, amount, *range.max, "the most of the range");
  }
}

void CheckSteps(const Field& field, const Quantity& value,
                const CapacityRange& range,
                const std::optional<Quantity>& default_value) {
  if (range.step->IsZero()) {
    field.Error("must be more than 0");
    return;
  }
  if (InNanos(range.min) + InNanos(*range.step) > InNanos(value)) {
    field.Error(fmt::format("one step above {} is more than {}, {}",
                            range.min.text.view(), value.text.view(),
                            kCapacity));
  }
  if (default_value.has_value()) {
    CheckStep(field, range, *default_value, "default");
  }
  if (range.max.has_value()) CheckStep(field, range, *range.max, "max");
}

std::optional<CapacityRange> DecodeRange(
    const Field& field, const Field& default_field, const Quantity& value,
    const std::optional<Quantity>& default_value) {
  std::optional<Quantity> min = RequiredAmount(field["min"]);
  if (!min.has_value()) return std::nullopt;
  CapacityRange range{*std::move(min), DecodeAmount(field["max"]),
                      DecodeAmount(field["step"])};
  CheckAtMost(field["min"], range.min, value, kCapacity);
  if (range.max.has_value()) {
    CheckAtMost(field["max"], *range.max, value, kCapacity);
    CheckAtMost(field["min"], range.min, *range.max, "the most of the range");
  }
  if (default_value.has_value()) {
    CheckDefault(default_field, range, *default_value);
  }
  if (range.step.has_value()) {
    CheckSteps(field["step"], value, range, default_value);
  }
  return range;
}

CapacityRequestPolicy DecodePolicy(const Field& field, const Quantity& value) {
  CapacityRequestPolicy policy;
  const Field default_field = field["default"];
  policy.default_value = DecodeAmount(default_field);
  const Field values = field["validValues"];
  const Field range = field["validRange"];
  const bool has_values = values.IsList() && !values.value()->items.empty();
  const bool has_range = range.IsMap();
  if (has_values && has_range) {
    field.Error("has validValues and validRange; only one is allowed");
    return policy;
  }
  if ((has_values || has_range) && !default_field.IsPresent()) {
    default_field.Error(fmt::format("is required with {}",
                                    has_values ? "validValues" : "validRange"));
  }
  if (has_values) DecodeValidValues(values, value, policy);
  if (has_range) {
    policy.valid_range =
        DecodeRange(range, default_field, value, policy.default_value);
  }
  return policy;
}

}  // namespace

std::optional<DeviceCapacity> DecodeCapacity(const Field& field, bool is_shared,
                                             TextPool& texts) {
  if (!field.RequireMap()) return std::nullopt;
  std::optional<Quantity> value = RequiredAmount(field["value"]);
  if (!value.has_value()) return std::nullopt;
  value->text = texts.Get(value->text);
  DeviceCapacity capacity{*std::move(value), nullptr};
  const Field policy = field["requestPolicy"];
  if (!policy.IsMap()) return capacity;
  if (!is_shared) {
    policy.Error("needs a device with allowMultipleAllocations: true");
  }
  capacity.request_policy = std::make_shared<const CapacityRequestPolicy>(
      DecodePolicy(policy, capacity.value));
  return capacity;
}

}  // namespace devmgr::api
