// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <map>
#include <vector>

#include "admission/aligned_plan.h"
#include "claim/device_plan.h"
#include "device/pod_plan.h"
#include "topology/alignment.h"

namespace devmgr::admission {

using DeviceMasks = std::map<device::NeedKey, std::vector<std::int64_t>>;

/// Aligns the containers of one pod, each with what those before it take. What
/// it is made of is borrowed.
class PodAligner {
 public:
  PodAligner(const claim::PluginDevices& devices,
             const claim::WantedDevices& wanted, const AlignmentInput& input)
      : devices_(devices), wanted_(wanted), input_(input) {}

  /// To be called once.
  ///   any error   that of a provider
  absl::Status Align();

  bool admitted() const { return alignment_.admitted; }
  const topology::PodAlignment& alignment() const { return alignment_; }

  /// The NUMA nodes to prefer for each need, as far as the pod was aligned.
  DeviceMasks Masks() const;

  /// What the container wants of device plugins, or, under the scope `pod`, all
  /// of the pod at once.
  std::map<ResourceName, std::int64_t> WantedBy(
      const ContainerName& container) const;

  /// Of one resource: what the containers before the last one that was looked
  /// at take of it, and what of that they hand on. Nothing under the scope
  /// `pod`.
  struct Taken {
    device::IdSet reusable;
    device::IdSet planned;
  };
  Taken TakenBefore(const ResourceName& resource) const;

  PodAlignmentInfo Info() const;

 private:
  bool IsByPod() const {
    return input_.rules.options.scope == topology::Scope::kPod;
  }
  std::vector<topology::ResourceHints> HintsFor(
      const ContainerName& container,
      const std::vector<topology::AlignedContainer>& before);
  void AddDeviceHints(const ContainerName& container,
                      std::vector<topology::ResourceHints>* lists) const;
  /// Those of claims that this node has allocated count; others have a say as
  /// long as the pod is admitted with it.
  void AddClaimHints(const ContainerName& container,
                     std::vector<topology::ResourceHints>* lists);
  DeviceMasks MasksOf(
      const std::vector<topology::AlignedContainer>& containers) const;

  const claim::PluginDevices& devices_;
  const claim::WantedDevices& wanted_;
  const AlignmentInput& input_;
  topology::PodAlignment alignment_;
  absl::Status failure_;
  /// What the containers before the last one that was looked at get.
  std::vector<device::Reservation> before_;
  /// By container: lists that were not merged.
  std::map<ContainerName, std::vector<topology::ResourceHints>> informative_;
};

}  // namespace devmgr::admission
