// SPDX-License-Identifier: Apache-2.0
//
// Items of a runtime's lists, and what it tells of a container, on the wire.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cri/wire.h"

namespace devmgr {

inline std::string WireField(std::uint32_t number, const std::string& value) {
  std::string bytes;
  cri::AppendBytesField(&bytes, number, value);
  return bytes;
}
inline std::string WireEntry(std::uint32_t number, const std::string& key,
                             const std::string& value) {
  return WireField(number, WireField(1, key) + WireField(2, value));
}

/// An item of ListPodSandbox, of pod `ns/<pod>` with UID `u-<pod>`; without a
/// name of no pod.
inline std::string SandboxItem(const std::string& id, const std::string& pod) {
  std::string metadata;
  if (!pod.empty()) {
    metadata =
        WireField(1, pod) + WireField(2, "u-" + pod) + WireField(3, "ns");
  }
  return WireField(1, WireField(1, id) + WireField(2, metadata));
}

/// An item of ListContainers: `c` in a sandbox.
inline std::string ContainerItem(
    const std::string& id, const std::string& sandbox,
    const std::map<std::string, std::string>& annotations = {},
    std::uint64_t state = 1) {
  std::string item = WireField(1, id) + WireField(2, sandbox) +
                     WireField(3, WireField(1, "c"));
  cri::AppendVarintField(&item, 6, state);
  for (const auto& [key, value] : annotations) item += WireEntry(9, key, value);
  return WireField(1, item);
}

/// A verbose ContainerStatus, as containerd answers it, of a container that was
/// created with this CDI device.
inline std::string StatusWithCdi(const std::string& id,
                                 const std::string& name) {
  return WireField(1, WireField(1, id)) +
         WireEntry(2, "info",
                   R"({"config": {"CDI_devices": [{"name": ")" + name +
                       R"("}]}, "runtimeSpec": {}})");
}

}  // namespace devmgr
