// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <variant>

#include "checkpoint/kubelet/dra_checkpoint.h"
#include "checkpoint/kubelet/old_dra_checkpoint.h"

namespace devmgr::kubelet_checkpoint {

/// `dra_manager_state` in the layout that a file has.
using DraStateFile = std::variant<DraCheckpoint, OldDraCheckpoint>;

/// What a file of any kubelet since 1.27 holds. The checksum of a DraCheckpoint
/// was found right; an OldDraCheckpoint says whether it was. Claims, pods and
/// devices are not judged: two entries may be of one claim. Reentrant.
///   DataLoss  the file is damaged, of another layout, or its checksum is not
///             that of its data; the message names the file and the place
absl::StatusOr<DraStateFile> DecodeDraStateFile(std::string_view bytes);

}  // namespace devmgr::kubelet_checkpoint
