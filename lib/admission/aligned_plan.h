// SPDX-License-Identifier: Apache-2.0
//
// Devices of plugins for a pod, aligned to NUMA nodes: hints of all that the
// pod wants, what they come to, and a plan that goes by it, or what is in the
// way. Pure; the rules stand in README.md beside this file.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>
#include <devmgr/topology.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "claim/device_plan.h"
#include "device/pod_plan.h"
#include "topology/alignment.h"
#include "topology/merge.h"
#include "topology/policy.h"

namespace devmgr::admission {

/// How pods are aligned, and to what.
struct AlignmentRules {
  topology::Options options;
  topology::NumaMachine machine;
  /// Claims have a say in which NUMA nodes devices of plugins are on, where
  /// their own hints do not forbid it: this node allocates. Otherwise their
  /// hints are only shown.
  bool claims_count = false;

  bool IsOn() const { return options.policy != topology::Policy::kNone; }
};

/// Hints of one container, or of the whole pod when its name is empty.
using ContainerHints =
    std::function<absl::StatusOr<std::vector<topology::ResourceHints>>(
        const ContainerName& container)>;

/// Hints of claims that this node is about to allocate, of one container or of
/// the whole pod; `before` as topology::HintSource has it.
using ChoiceHints =
    std::function<absl::StatusOr<std::vector<topology::ResourceHints>>(
        const ContainerName& container,
        const std::vector<topology::AlignedContainer>& before)>;

struct AlignmentInput {
  const AlignmentRules& rules;
  /// As ContainersOf has them.
  std::vector<ContainerName> containers;
  ContainerHints claims = {};     ///< Null: there are none.
  ContainerHints providers = {};  ///< Of an embedder; null: there are none.
  /// Count as those of devices do. Null: no claim is about to be allocated.
  ChoiceHints choices = {};
  /// The same on the machine without other pods.
  ChoiceHints choices_when_empty = {};
};

struct AlignedPlan {
  /// A pod that is refused has a shortage of the kinds kNotAligned or
  /// kNeverAligned.
  device::PodPlan plan;
  /// Null: it was not aligned, since it holds devices already, or for want of
  /// devices.
  std::shared_ptr<const PodAlignmentInfo> alignment;
  /// Not empty: the pod is refused for the hints of an embedder, who may have
  /// others later; says for which.
  std::string provider_refusal;
  /// With AlignmentInput::choices: the pod is refused, and would not be on the
  /// machine without other pods. There may be no shortage of devices of
  /// plugins.
  bool waits = false;
  /// With `waits`: to what the refused container would be aligned there. No
  /// value: to any nodes.
  std::optional<NumaMask> possible = std::nullopt;
};

/// Init containers first, then the others.
std::vector<ContainerName> ContainersOf(const Pod& pod);

/// Plans all of them. A pod that holds devices already, or whose containers run
/// with devices that the ledger does not know, is not aligned anew.
///   any error   that of a provider
absl::StatusOr<AlignedPlan> PlanAligned(const claim::PluginDevices& devices,
                                        const claim::WantedDevices& wanted,
                                        const AlignmentInput& input);

}  // namespace devmgr::admission
