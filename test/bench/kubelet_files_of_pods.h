// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <filesystem>

namespace devmgr::bench {

/// So many pods, each with `kContainers` containers that hold `kDevices`
/// devices of `kResource` each, of eight NUMA nodes.
inline constexpr int kContainers = 4;
inline constexpr int kDevices = 8;

/// The checkpoint files of a kubelet that runs them, each with a claim besides
/// if there are to be `claims`.
void WriteKubeletFiles(const std::filesystem::path& kubelet_dir, int pods,
                       bool claims);

/// The pods as an API server has them, running.
ObjectSnapshot ObjectsOfPods(int pods);

}  // namespace devmgr::bench
