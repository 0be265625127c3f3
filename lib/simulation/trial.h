// SPDX-License-Identifier: Apache-2.0
//
// One pod, tried on a node: the steps of lib/pods, with the functions that
// decide in them, on values.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/simulation.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/claim_steering.h"
#include "admission/judge.h"
#include "control/outlook.h"
#include "control/provide.h"
#include "simulation/refusals.h"
#include "simulation/simulated_node.h"

namespace devmgr::simulation {

/// Tries pods one after the other, within one budget of steps. Lives on one
/// thread.
class Trials {
 public:
  /// `stop` ends a search once it is true. Borrowed; may be null.
  Trials(const NodeMoment& moment, std::uint64_t steps,
         const std::atomic<bool>* stop)
      : provider_(moment.feature_gates, steps), left_(steps), stop_(stop) {
    if (moment.alignment == nullptr || !moment.alignment->IsOn()) return;
    steering_.emplace(provider_, moment.alignment->machine.nodes);
  }

  /// What would be decided about the pod. It has on `node` what it would get,
  /// or has a place in the queue there.
  absl::StatusOr<SimulatedPod> Try(Pod pod, SimulatedNode& node);

  bool interrupted() const { return interrupted_; }

  SimulatedFigures Figures(const SimulatedNode& node);

 private:
  class One;

  control::ClaimProvider provider_;
  /// Where pods are aligned to NUMA nodes.
  std::optional<admission::ClaimSteering> steering_;
  std::uint64_t left_;  ///< Of the steps.
  const std::atomic<bool>* const stop_;
  bool interrupted_ = false;
  std::set<PodUid> tried_;  ///< What these hold was given in this run.
};

}  // namespace devmgr::simulation
