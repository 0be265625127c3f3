// SPDX-License-Identifier: Apache-2.0
//
// Edits of an OCI runtime configuration, one kind at a time. Without edits
// nothing is touched. All of them:
//   InvalidArgument  something on the way to what is edited has another type,
//                    or is there twice; names the member. The configuration
//                    is spoilt then
#pragma once

#include <absl/status/status.h>
#include <devmgr/cdi_spec.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cdi/json_node.h"

namespace devmgr::cdi {

/// What becomes of what is there already.
enum class Existing { kReplaced, kKept };

/// `process.env`. A variable that is there is replaced in place.
absl::Status SetOciEnv(JsonNode& config, const std::vector<NamedValue>& env,
                       Existing existing);

/// `linux.devices`, in place of those of the same path, and
/// `linux.resources.devices` for block and character nodes. Type, numbers and
/// mode must be known; without owner a node is the process's.
absl::Status AddOciDevices(JsonNode& config,
                           const std::vector<CdiDeviceNode>& nodes);

/// `linux.netDevices`.
absl::Status SetOciNetDevices(JsonNode& config,
                              const std::vector<CdiNetDevice>& devices);

/// `mounts`, in place of those of the same destination; then those of fewer
/// path elements come first. Where the container has a user namespace, binds
/// get their IDs mapped.
absl::Status AddOciMounts(JsonNode& config, std::vector<CdiMount> mounts);

/// The lists in `hooks`.
absl::Status AddOciHooks(JsonNode& config, const std::vector<CdiHook>& hooks);

/// `linux.intelRdt`, as a whole.
absl::Status SetOciIntelRdt(JsonNode& config, const CdiIntelRdt& rdt);

/// `process.user.additionalGids`: those that are not there and not 0.
absl::Status AddOciGroups(JsonNode& config,
                          const std::vector<std::uint32_t>& groups);

/// `annotations`: those that are not there.
absl::Status AddOciAnnotations(JsonNode& config,
                               const std::vector<NamedValue>& annotations);

}  // namespace devmgr::cdi
