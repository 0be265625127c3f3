// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cdi.h>

namespace devmgr::cdi {

/// The path of the host node of `node`.
const std::string& HostPathOf(const CdiDeviceNode& node);

/// `b`, `c` or `p`; empty for what is no node.
std::string_view NodeType(const HostPath& host);

/// The node with type, numbers and mode as the host has them, where the spec
/// leaves them open. Type and numbers in full: no host node is needed.
///   FailedPrecondition  the host lacks what is left open: no such path, no
///                       device node there (links are not followed), or one of
///                       another type
absl::StatusOr<CdiDeviceNode> FilledFromHost(CdiDeviceNode node,
                                             const CdiHost& host);

}  // namespace devmgr::cdi
