// SPDX-License-Identifier: Apache-2.0
//
// From the manifest of a pod to the configurations that a runtime takes. Pure.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "devmgr/wire/cri/v1/cri.pb.h"

namespace edge {

namespace cri = devmgr::wire::cri::v1;

struct PodPlan {
  devmgr::Pod pod = {};  ///< What is about devices and the order of containers.
  cri::PodSandboxConfig sandbox = {};
  /// By name. Without devices: the shim adds them.
  std::map<std::string, cri::ContainerConfig> containers = {};
  std::vector<std::string> empty_dirs = {};  ///< Names of such volumes.
  std::chrono::seconds grace{30};
  std::string ignored = {};  ///< What has no effect here, each after a blank.
};

/// Reads a manifest, as devmgr::PodTextsOf has it. `emptyDir` volumes of the
/// pod lie in `volumes`.
///   InvalidArgument  it is no usable pod, or needs what this program cannot
///                    do; the message names all of that
absl::StatusOr<PodPlan> ReadPod(const std::string& text, const std::string& uid,
                                const std::filesystem::path& volumes);

}  // namespace edge
