// SPDX-License-Identifier: Apache-2.0
//
// What entries of `dra_manager_state` have in common in its layouts.
#pragma once

#include <absl/status/statusor.h>

#include "checkpoint/kubelet/dra_checkpoint.h"
#include "checkpoint/kubelet/go_writer.h"
#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {

/// UID, name, pods and drivers; nothing for drivers where their key is missing.
absl::StatusOr<DraClaim> ReadDraClaim(const JsonField& field);

/// `"ClaimUID":...,"ClaimName":...,"Namespace":...,"PodUIDs":...`
void WriteClaimIdentity(const DraClaim& claim, GoJsonWriter& json);

/// `"DriverState":...`, with what releases since 1.32 brought if `is_v1`.
void WriteDriverStates(const DraClaim& claim, bool is_v1, GoJsonWriter& json);

}  // namespace devmgr::kubelet_checkpoint
