// SPDX-License-Identifier: Apache-2.0
#include "cdi/device_node.h"

#include "common/status.h"

namespace devmgr::cdi {

const std::string& HostPathOf(const CdiDeviceNode& node) {
  return node.host_path.empty() ? node.path : node.host_path;
}

std::string_view NodeType(const HostPath& host) {
  switch (host.type) {
    case HostPath::Type::kBlockNode:
      return "b";
    case HostPath::Type::kCharNode:
      return "c";
    case HostPath::Type::kFifo:
      return "p";
    case HostPath::Type::kSymlink:
    case HostPath::Type::kDirectory:
    case HostPath::Type::kFile:
      break;
  }
  return "";
}

absl::StatusOr<CdiDeviceNode> FilledFromHost(CdiDeviceNode node,
                                             const CdiHost& host) {
  const std::string& path = HostPathOf(node);
  const bool is_complete =
      !node.type.empty() && (node.major != 0 || node.type == "p");
  const auto found = host.look_at(path, /*follow_links=*/false);
  const std::string_view type = found.ok() ? NodeType(*found) : "";
  if (type.empty()) {
    if (is_complete) return node;
    if (found.ok()) {
      return FailedPreconditionError("'{}' on the host is not a device node",
                                     path);
    }
    return FailedPreconditionError("failed to stat '{}' on the host: {}", path,
                                   MessageOf(found.status()));
  }
  if (!is_complete) {
    if (!node.type.empty() && node.type != type) {
      return FailedPreconditionError(
          "host type mismatch: '{}' is of type '{}', the spec wants '{}'", path,
          type, node.type);
    }
    node.type = type;
    if (node.major == 0 && type != "p") {
      node.major = found->major;
      node.minor = found->minor;
    }
  }
  if (!node.file_mode) node.file_mode = found->mode;
  return node;
}

}  // namespace devmgr::cdi
