// SPDX-License-Identifier: Apache-2.0
//
// What a kubelet in our place would have in its checkpoint file of devices.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::migration {

/// As an export has it, but for the registered devices: all that their plugin
/// lists as Healthy now. Pure.
kubelet_checkpoint::DeviceCheckpoint MirroredDevices(
    const view::Moment& moment);

/// Copies `file` if it names pods that `state` does not know, or is no
/// checkpoint of devices; returns where to. It is beside it, under a name that
/// ends in `.kept-` and a checksum, so that one file is kept once. Nothing when
/// there is no such file.
///   PermissionDenied, Unavailable  as the kernel says
///   DataLoss                       it is no regular file, or too large
absl::StatusOr<std::optional<std::filesystem::path>> KeepOfOthers(
    const std::filesystem::path& file, const state::State& state);

}  // namespace devmgr::migration
