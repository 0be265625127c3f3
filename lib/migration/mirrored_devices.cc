// SPDX-License-Identifier: Apache-2.0
#include "migration/mirrored_devices.h"

#include <algorithm>
#include <string>

#include "common/status.h"
#include "device/endpoint_machine.h"
#include "device/inventory.h"
#include "migration/kubelet_export.h"
#include "migration/kubelet_files.h"

namespace devmgr::migration {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;

bool KnowsAll(const state::State& state, const DeviceCheckpoint& checkpoint) {
  if (!checkpoint.entries.has_value()) return true;
  return std::all_of(
      checkpoint.entries->begin(), checkpoint.entries->end(),
      [&](const auto& entry) { return state.FindPod(entry.pod) != nullptr; });
}

}  // namespace

DeviceCheckpoint MirroredDevices(const view::Moment& moment) {
  DeviceCheckpoint checkpoint = HeldDevices(moment.state);
  // Resources whose plugins are not back have no healthy devices.
  for (auto& [name, ids] : *checkpoint.registered) ids.emplace();
  for (const auto& [name, resource] : moment.resources) {
    if (!device::HasPlugin(resource.state)) continue;
    auto& ids = (*checkpoint.registered)[name].emplace();
    for (const device::InventoryDevice& device : resource.devices) {
      if (device.listed && device.device.health == device::Health::kHealthy) {
        ids.push_back(device.device.id);
      }
    }
    std::sort(ids.begin(), ids.end());
  }
  return checkpoint;
}

absl::StatusOr<std::optional<std::filesystem::path>> KeepOfOthers(
    const std::filesystem::path& file, const state::State& state) {
  std::optional<std::filesystem::path> kept;
  DEVMGR_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                          ReadFileIfAny(file));
  if (!bytes.has_value()) return kept;
  const auto checkpoint = kubelet_checkpoint::DecodeDeviceCheckpoint(*bytes);
  if (checkpoint.ok() && KnowsAll(state, *checkpoint)) return kept;
  DEVMGR_ASSIGN_OR_RETURN(kept, KeepBytes(*bytes, file, "kept"));
  return kept;
}

}  // namespace devmgr::migration
