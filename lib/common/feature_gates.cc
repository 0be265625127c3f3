// SPDX-License-Identifier: Apache-2.0
#include "common/feature_gates.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace devmgr {

std::span<const FeatureGate> FeatureGates() {
  static constexpr std::array kGates = {
      FeatureGate{Feature::kDraConsumableCapacity, "DRAConsumableCapacity",
                  true},
      FeatureGate{Feature::kDraExtendedResource, "DRAExtendedResource", true},
      FeatureGate{Feature::kDraOptionalNodeOperations,
                  "DRAOptionalNodeOperations", false},
      FeatureGate{Feature::kDraWorkloadResourceClaims,
                  "DRAWorkloadResourceClaims", false},
      FeatureGate{Feature::kResourceHealthStatus, "ResourceHealthStatus", true},
      FeatureGate{Feature::kResourceHealthStatusMessage,
                  "ResourceHealthStatusMessage", true},
  };
  return kGates;
}

const FeatureGate* FindFeatureGate(std::string_view name) {
  const auto gates = FeatureGates();
  const auto found =
      std::find_if(gates.begin(), gates.end(),
                   [&](const FeatureGate& gate) { return gate.name == name; });
  return found != gates.end() ? &*found : nullptr;
}

std::span<const IdleGate> IdleGates() {
  static constexpr std::array kGates = {
      // The API server, the scheduler and drivers do these.
      IdleGate{"DRAAdminAccess", true, false},
      IdleGate{"DRADeviceBindingConditions", true, false},
      IdleGate{"DRADeviceTaints", true, false},
      IdleGate{"DRANodeAllocatableResources", false, false},
      IdleGate{"DRAPartitionableDevices", true, false},
      // A claim that has alternatives was let in by the API server.
      IdleGate{"DRAPrioritizedList", true, true},
      IdleGate{"DRAResourceClaimDeviceStatus", true, false},
      IdleGate{"DynamicResourceAllocation", true, true},
      // See WhyNotGate.
      IdleGate{"GenericWorkload", false, false},
      // Who serves pod-resources asks for what is in there.
      IdleGate{"KubeletPodResourcesDynamicResources", true, false},
  };
  return kGates;
}

const IdleGate* FindIdleGate(std::string_view name) {
  const auto gates = IdleGates();
  const auto found =
      std::find_if(gates.begin(), gates.end(),
                   [&](const IdleGate& gate) { return gate.name == name; });
  return found != gates.end() ? &*found : nullptr;
}

std::string WhyNotGate(const std::map<std::string, bool>& gates,
                       const std::string& gate) {
  const bool on = gates.at(gate);
  if (const IdleGate* idle = FindIdleGate(gate)) {
    return idle->is_locked && !on
               ? fmt::format("feature gate '{}' is locked: it is always on",
                             gate)
               : "";
  }
  const FeatureGate* known = FindFeatureGate(gate);
  if (known == nullptr) {
    return fmt::format("feature gate '{}' is not known", gate);
  }
  const auto workload = gates.find("GenericWorkload");
  if (known->feature == Feature::kDraWorkloadResourceClaims && on &&
      workload != gates.end() && !workload->second) {
    return fmt::format("feature gate '{}' needs 'GenericWorkload'", gate);
  }
  return "";
}

bool IsOn(const std::map<std::string, bool>& gates, Feature feature) {
  const auto all = FeatureGates();
  const auto gate =
      std::find_if(all.begin(), all.end(), [&](const FeatureGate& candidate) {
        return candidate.feature == feature;
      });
  const auto set = gates.find(std::string(gate->name));
  return set != gates.end() ? set->second : gate->on_by_default;
}

}  // namespace devmgr
