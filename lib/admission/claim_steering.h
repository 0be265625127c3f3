// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "admission/claim_alignment.h"
#include "control/provide.h"
#include "device/pod_needs.h"

namespace devmgr::admission {

/// Has the devices of claims that this node allocates chosen along NUMA nodes,
/// together with what the pod wants of device plugins. Which sets of nodes
/// would do is found by trying to allocate the claims on them
/// (topology/claim_hints.h). Lives on one thread.
class ClaimSteering {
 public:
  /// Aligns the claims of a pod, which are about to be allocated, with what it
  /// wants of device plugins. `pod` has the status that it would have.
  ///   any error   that of a provider of hints, or of `hints`
  using Align = std::function<absl::StatusOr<ClaimAlignment>(
      const std::shared_ptr<const Pod>& pod,
      std::vector<device::DeviceNeed> needs, const ClaimHints& hints)>;

  /// `provider` is borrowed; `machine` are the nodes of this machine.
  ClaimSteering(control::ClaimProvider& provider, NumaMask machine)
      : provider_(provider), machine_(machine) {}

  /// `plain` is what `pod` would get of `input` wherever its devices are. The
  /// result is what it gets along NUMA nodes, or why it waits or is rejected;
  /// with `explain` also what refuses each device, one on a wrong node as
  /// allocator::Refusal::kNuma. All searches together take the steps of
  /// `input`, if it has any.
  ///   any error   that of a search that was given up, or of `align`
  absl::StatusOr<control::Provision> Steer(const Pod& pod,
                                           const control::ProvideInput& input,
                                           control::Provision plain,
                                           const Align& align,
                                           bool explain = false);

  /// What `pod` gets of `input` with devices on these nodes; of drivers that
  /// say nothing of nodes wherever they are. A refusal has the devices of other
  /// nodes as allocator::Refusal::kNuma.
  ///   Unavailable   the search was given up
  absl::StatusOr<control::Provision> ProvideOn(
      const ClaimMasks& masks, const Pod& pod,
      const control::ProvideInput& input);

  /// Of all searches of the last Steer() or ProvideOn().
  std::uint64_t last_steps() const { return last_steps_; }

 private:
  class Attempt;

  control::ClaimProvider& provider_;
  const NumaMask machine_;
  std::uint64_t last_steps_ = 0;
};

}  // namespace devmgr::admission
