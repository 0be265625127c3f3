// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/topology.h>

#include <functional>
#include <utility>

#include "control/provide.h"
#include "pods/device_request.h"

namespace devmgr::pods {

/// Has the devices of claims that this node allocates chosen along NUMA nodes,
/// together with what the pod wants of device plugins. Which sets of nodes
/// would do is found by trying to allocate the claims on them
/// (topology/claim_hints.h). Lives on the manager's thread.
class ClaimSteering {
 public:
  /// See DeviceAdmission::AlignClaims.
  using Align = std::function<absl::StatusOr<ClaimAlignment>(
      const DeviceRequest& request, const ClaimHints& hints, bool dry)>;

  /// `provider` is borrowed; `machine` are the nodes of this machine.
  ClaimSteering(control::ClaimProvider& provider, NumaMask machine, Align align)
      : provider_(provider), machine_(machine), align_(std::move(align)) {}

  /// `plain` is what `pod` would get of `input` wherever its devices are. The
  /// result is what it gets along NUMA nodes, or why it waits or is rejected.
  ///   any error   that of a search that was given up, or of hints
  absl::StatusOr<control::Provision> Steer(const Pod& pod,
                                           const control::ProvideInput& input,
                                           control::Provision plain, bool dry);

 private:
  class Attempt;

  control::ClaimProvider& provider_;
  const NumaMask machine_;
  const Align align_;
};

}  // namespace devmgr::pods
