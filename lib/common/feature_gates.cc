// SPDX-License-Identifier: Apache-2.0
#include "common/feature_gates.h"

#include <devmgr/feature_gates.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/kubelet_gates.h"
#include "common/status.h"

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

bool IsAlwaysOn(std::string_view name) {
  return name == "DynamicResourceAllocation" || name == "DRAPrioritizedList";
}

bool IsIdleGate(std::string_view name) {
  return FindKubeletGate(name) != nullptr && FindFeatureGate(name) == nullptr;
}

std::string WhyNotGate(const std::map<std::string, bool>& gates,
                       const std::string& gate) {
  const FeatureGate* known = FindFeatureGate(gate);
  if (known == nullptr) {
    if (IsIdleGate(gate)) return "";
    const std::string_view likely = LikelyKubeletGate(gate);
    return likely.empty()
               ? fmt::format("feature gate '{}' is not known", gate)
               : fmt::format("feature gate '{}' is not known; is '{}' meant?",
                             gate, likely);
  }
  const auto workload = gates.find("GenericWorkload");
  if (known->feature == Feature::kDraWorkloadResourceClaims && gates.at(gate) &&
      workload != gates.end() && !workload->second) {
    return fmt::format("feature gate '{}' needs 'GenericWorkload'", gate);
  }
  return "";
}

namespace {

bool IsAgainstItsLock(std::string_view name, bool on) {
  const KubeletGate* gate = FindKubeletGate(name);
  return gate != nullptr && gate->locked_since != 0 && gate->locked_to != on;
}

std::string_view HereText(std::string_view name, bool on) {
  if (IsAlwaysOn(name)) return "it stays on here";
  if (IsIdleGate(name)) return "it turns nothing here";
  return on ? "it is on here all the same" : "it is off here all the same";
}

}  // namespace

std::string IdleGatesText(const std::map<std::string, bool>& gates) {
  std::vector<std::string_view> names;
  for (const auto& [gate, on] : gates) {
    if (IsIdleGate(gate) && !IsAgainstItsLock(gate, on)) names.push_back(gate);
  }
  if (names.empty()) return "";
  return fmt::format("feature gates without effect on this node: {}",
                     fmt::join(names, ", "));
}

std::string LockedGatesText(const std::map<std::string, bool>& gates) {
  std::vector<std::string> texts;
  for (const auto& [name, on] : gates) {
    if (!IsAgainstItsLock(name, on)) continue;
    const KubeletGate& gate = *FindKubeletGate(name);
    texts.push_back(
        fmt::format("{}={} (locked to {} since Kubernetes 1.{}{}; {})", name,
                    on, gate.locked_to, gate.locked_since,
                    gate.locked_since == kFirstKnownRelease ? " or before" : "",
                    HereText(name, on)));
  }
  if (texts.empty()) return "";
  return fmt::format("feature gates set against their lock: {}",
                     fmt::join(texts, ", "));
}

absl::Status CheckFeatureGates(const std::map<std::string, bool>& gates) {
  std::vector<std::string> problems;
  for (const auto& [gate, on] : gates) {
    std::string why = WhyNotGate(gates, gate);
    if (!why.empty()) problems.push_back(std::move(why));
  }
  if (problems.empty()) return absl::OkStatus();
  constexpr std::size_t kMostProblems = 10;
  if (problems.size() > kMostProblems) {
    const std::size_t more = problems.size() - kMostProblems;
    problems.resize(kMostProblems);
    problems.push_back(fmt::format("and {} more", more));
  }
  return InvalidArgumentError("{}", fmt::to_string(fmt::join(problems, "; ")));
}

std::vector<std::string> FeatureGateWarnings(
    const std::map<std::string, bool>& gates) {
  std::vector<std::string> warnings;
  for (std::string text : {IdleGatesText(gates), LockedGatesText(gates)}) {
    if (!text.empty()) warnings.push_back(std::move(text));
  }
  return warnings;
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
