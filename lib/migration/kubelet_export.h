// SPDX-License-Identifier: Apache-2.0
//
// From the ledger to what a kubelet of the same node goes on with. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "checkpoint/kubelet/dra_checkpoint.h"
#include "state/state.h"

namespace devmgr::migration {

struct ExportPlan {
  kubelet_checkpoint::DeviceCheckpoint devices;
  kubelet_checkpoint::DraCheckpoint claims;
  std::size_t pods = 0;     ///< That hold any of it.
  std::size_t held = 0;     ///< Devices of plugins, by container.
  std::size_t entries = 0;  ///< Claims.
  /// What the kubelet's files cannot say: one sentence for each.
  std::vector<std::string> losses;
};

/// What containers hold of plugins, in order of pod, container and resource. Of
/// registered resources those devices are listed.
kubelet_checkpoint::DeviceCheckpoint HeldDevices(const state::State& state);

/// Every device for which its plugin has answered, every claim. Equal states
/// give equal files: entries in order of pod, container and resource, claims in
/// order of their names.
ExportPlan PlanExport(const state::State& state);

}  // namespace devmgr::migration
