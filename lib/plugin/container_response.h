// SPDX-License-Identifier: Apache-2.0
//
// The ContainerAllocateResponse of v1beta1, as a plugin sends it and as the
// kubelet keeps it in its checkpoint.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "device/device.h"

namespace devmgr::plugin {

/// What the response puts into a container, with its bytes. CheckEdits of
/// allocate_answer.h is to follow.
///   InvalidArgument  the bytes are no such message
absl::StatusOr<device::ContainerEdits> DecodeContainerResponse(
    std::string_view bytes);

/// The bytes that the edits came in; of edits whose bytes were not kept the
/// ones that say the same, with maps in order of their keys.
std::string EncodeContainerResponse(const device::ContainerEdits& edits);

}  // namespace devmgr::plugin
