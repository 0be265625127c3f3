// SPDX-License-Identifier: Apache-2.0
#include "allocator/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace devmgr::allocator {
namespace {

const AllocatedDeviceStatus* StatusOf(
    const ResourceClaim& claim, const DeviceRequestAllocationResult& result) {
  const auto& devices = claim.status.devices;
  const auto status = std::find_if(
      devices.begin(), devices.end(), [&](const AllocatedDeviceStatus& each) {
        return each.driver == result.driver && each.pool == result.pool &&
               each.device == result.device && each.share_id == result.share_id;
      });
  return status == devices.end() ? nullptr : &*status;
}

/// Null when it is not true. `status` may be null.
const Condition* TrueCondition(const AllocatedDeviceStatus* status,
                               std::string_view type) {
  if (status == nullptr) return nullptr;
  for (const Condition& condition : status->conditions) {
    if (condition.type == type && condition.status == "True") return &condition;
  }
  return nullptr;
}

std::string ConditionText(const DeviceRequestAllocationResult& result,
                          std::string_view condition) {
  return fmt::format("{} of device {}/{}/{}", condition, result.driver,
                     result.pool, result.device);
}

}  // namespace

BindingState BindingOf(const ResourceClaim& claim) {
  BindingState state;
  if (!claim.status.allocation) return state;
  for (const auto& result : claim.status.allocation->results) {
    const AllocatedDeviceStatus* status = StatusOf(claim, result);
    for (const std::string& type : result.binding_failure_conditions) {
      const Condition* failed = TrueCondition(status, type);
      if (failed == nullptr) continue;
      return {
          Binding::kFailed,
          fmt::format("{}: {}", ConditionText(result, type), failed->message)};
    }
    for (const std::string& type : result.binding_conditions) {
      if (state.binding == Binding::kReady &&
          TrueCondition(status, type) == nullptr) {
        state = {Binding::kWaiting, ConditionText(result, type)};
      }
    }
  }
  return state;
}

}  // namespace devmgr::allocator
