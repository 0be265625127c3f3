// SPDX-License-Identifier: Apache-2.0
//
// What the plugins of all its resources put into one container, as one.
#pragma once

#include <devmgr/container_devices.h>

#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace devmgr::device {

/// What the plugin of one resource answered for the container.
struct ResourceEdits {
  ResourceName resource;
  ContainerEdits edits;
};

/// A part of the merge, and the resource it comes from.
template <typename T>
struct FromResource {
  T value;
  ResourceName resource;
  friend bool operator==(const FromResource&, const FromResource&) = default;
};

/// Two answers (or one, twice) want different things of the same name. The
/// container gets the first.
struct EditConflict {
  std::string what;  ///< `env`, `mount`, `device`, `annotation`.
  std::string key;   ///< The name, or the path in the container.
  std::string kept_from;
  std::string dropped_from;
  friend bool operator==(const EditConflict&, const EditConflict&) = default;
};
/// For people. Values are not shown: they may be secret.
std::string ConflictText(const EditConflict& conflict);

struct MergedEdits {
  std::vector<FromResource<NamedValue>> env;           ///< By name.
  std::vector<FromResource<DeviceMount>> mounts;       ///< By container path.
  std::vector<FromResource<DeviceNode>> devices;       ///< By container path.
  std::vector<FromResource<NamedValue>> annotations;   ///< By name.
  std::vector<FromResource<std::string>> cdi_devices;  ///< By name.
  std::vector<EditConflict> conflicts;                 ///< By `what`, then key.
};

/// Each name or container path occurs once. On a conflict the resource whose
/// name comes first wins, and within one answer what comes first. Nothing
/// fails; whether a conflict is an error is for the caller to say.
MergedEdits MergeEdits(std::vector<ResourceEdits> edits);

}  // namespace devmgr::device
