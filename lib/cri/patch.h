// SPDX-License-Identifier: Apache-2.0
//
// Changing container configs inside of CRI requests without decoding them:
// fields that are unknown, their order and unusual encodings stay as they were.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cdi.h>
#include <devmgr/container_devices.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cri {

/// How one list of a config changes: entries whose key is in `drop` go, `first`
/// come before all that stay, `last` after them.
template <typename Entry>
struct ListEdit {
  std::vector<Entry> first = {};
  std::set<std::string> drop = {};
  std::vector<Entry> last = {};
  bool empty() const { return first.empty() && drop.empty() && last.empty(); }
};

/// Keys are names (env, annotations, CDI devices) and container paths (mounts,
/// devices).
struct ConfigEdits {
  ListEdit<NamedValue> env;
  ListEdit<CriMount> mounts;
  ListEdit<DeviceNode> devices;
  ListEdit<NamedValue> annotations;
  ListEdit<std::string> cdi_devices;
  std::vector<std::uint32_t> supplemental_groups;  ///< Added.
  bool empty() const;
};

/// The config of a CreateContainerRequest changed. Without edits the bytes are
/// the same.
///   InvalidArgument  the bytes are no such request
absl::StatusOr<std::string> PatchCreateContainer(std::string_view request,
                                                 const ConfigEdits& edits);

/// The annotations of the sandbox in a RunPodSandboxRequest changed, in the
/// same way.
absl::StatusOr<std::string> PatchRunPodSandbox(
    std::string_view request, const ListEdit<NamedValue>& annotations);

/// The same for each config of a RestorePodRequest, in its order, and for the
/// annotations of its sandbox; configs beyond the last edit stay.
absl::StatusOr<std::string> PatchRestorePod(
    std::string_view request, const std::vector<ConfigEdits>& edits,
    const ListEdit<NamedValue>& sandbox_annotations = {});

}  // namespace devmgr::cri
