// SPDX-License-Identifier: Apache-2.0
#include "cdi/host_devices.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "cdi/device_node.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

constexpr int kMaxDirectories = 8;

/// What containerd does not look at in a directory of devices.
constexpr std::array<std::string_view, 8> kLeftOut = {
    ".lxc", ".lxd-mounts", ".udev", "console", "fd", "mqueue", "pts", "shm"};

bool IsLeftOut(std::string_view name) {
  return std::find(kLeftOut.begin(), kLeftOut.end(), name) != kLeftOut.end();
}

CdiDeviceNode NodeOf(const DeviceNode& device, const HostPath& host) {
  CdiDeviceNode node;
  node.path = device.container_path;
  node.host_path = device.host_path;
  node.type = NodeType(host);
  node.major = host.major;
  node.minor = host.minor;
  node.file_mode = host.mode;
  node.permissions = device.permissions;
  node.uid = host.uid;
  node.gid = host.gid;
  return node;
}

absl::Status AddFromDirectory(const DeviceNode& directory, const CdiHost& host,
                              int depth, std::vector<CdiDeviceNode>* nodes) {
  if (depth > kMaxDirectories) {
    return ResourceExhaustedError("'{}' is nested more than {} levels deep",
                                  directory.host_path, kMaxDirectories);
  }
  DEVMGR_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          host.list(directory.host_path));
  for (const std::string& name : names) {
    if (IsLeftOut(name)) continue;
    DeviceNode device = directory;
    device.host_path += "/" + name;
    device.container_path += "/" + name;
    const auto found = host.look_at(device.host_path, /*follow_links=*/false);
    if (absl::IsNotFound(found.status())) continue;  // gone since
    DEVMGR_RETURN_IF_ERROR(found.status());
    if (found->type == HostPath::Type::kDirectory) {
      DEVMGR_RETURN_IF_ERROR(AddFromDirectory(device, host, depth + 1, nodes));
    } else if (found->type == HostPath::Type::kCharNode ||
               found->type == HostPath::Type::kBlockNode) {
      nodes->push_back(NodeOf(device, *found));
    }
    if (nodes->size() > kMaxCdiEdits) {
      return ResourceExhaustedError("'{}' has too many nodes: more than {}",
                                    directory.host_path, kMaxCdiEdits);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddHostNodes(const DeviceNode& device, const CdiHost& host,
                          std::vector<CdiDeviceNode>* nodes) {
  if (device.permissions.empty()) {
    return FailedPreconditionError("device '{}' has no permissions",
                                   device.container_path);
  }
  const auto found = host.look_at(device.host_path, /*follow_links=*/true);
  if (!found.ok()) {
    return FailedPreconditionError("device '{}': {}", device.container_path,
                                   MessageOf(found.status()));
  }
  if (found->type == HostPath::Type::kCharNode ||
      found->type == HostPath::Type::kBlockNode) {
    nodes->push_back(NodeOf(device, *found));
    return absl::OkStatus();
  }
  const std::size_t before = nodes->size();
  if (found->type == HostPath::Type::kDirectory) {
    DEVMGR_RETURN_IF_ERROR(AddFromDirectory(device, host, 1, nodes));
  }
  if (nodes->size() > before) return absl::OkStatus();
  return FailedPreconditionError("'{}' on the host has no device node",
                                 device.host_path);
}

}  // namespace devmgr::cdi
