// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/cdi.h>

#include <vector>

namespace devmgr::cdi {

/// Adds the nodes that a CRI runtime makes of a plugin's device: that of the
/// host path, links followed, with the host's numbers, mode and owner; of a
/// directory those of all nodes in it, but for what runtimes leave out of
/// `/dev`.
///   FailedPrecondition  no device node, and no directory with any; no
///                       permissions
///   ResourceExhausted   more than kMaxCdiEdits nodes, or directories nested
///                       too deep
absl::Status AddHostNodes(const DeviceNode& device, const CdiHost& host,
                          std::vector<CdiDeviceNode>* nodes);

}  // namespace devmgr::cdi
