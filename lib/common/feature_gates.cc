// SPDX-License-Identifier: Apache-2.0
#include "common/feature_gates.h"

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
