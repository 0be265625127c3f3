// SPDX-License-Identifier: Apache-2.0
//
// Capacities of devices: what a claim is charged of each, by the device's
// request policy (KEP-5075), in exact decimals.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <optional>
#include <string_view>
#include <vector>

#include "allocator/amount.h"

namespace devmgr::allocator {

/// A capacity of a device.
struct Capacity {
  std::string_view name;  ///< As the device spells it.
  Amount value = 0;
  const DeviceCapacity* source = nullptr;  ///< With the policy.
};

std::vector<Capacity> CapacitiesOf(const SliceDevice& device);

/// What one claim is charged of one capacity.
///
///   not requested   the policy's default; without one the full value
///   no policy       the amount that is requested
///   a range         not below its minimum, rounded up to a step above it, not
///                   beyond its maximum
///   valid values    the smallest that is not below the request
///
/// Nothing when the policy has no such amount. `requested` may be null.
std::optional<Amount> Charge(const Capacity& capacity,
                             const Quantity* requested);

/// The same as a quantity, spelt as the request, the policy or the value is.
Quantity ChargedQuantity(const Capacity& capacity, const Quantity* requested,
                         Amount amount);

/// What a device charges for `requests`, in the order of `capacities`. Nothing
/// when the device cannot serve them at all: it lacks a capacity of that name,
/// its policy has no such amount, or it is too small.
///   InvalidArgument  an amount is negative
absl::StatusOr<std::optional<std::vector<Amount>>> ChargeAll(
    const std::vector<Capacity>& capacities,
    const SortedMap<Quantity>& requests);

}  // namespace devmgr::allocator
