// SPDX-License-Identifier: Apache-2.0
//
// From a pod's manifest to what a container runtime is asked for.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi.h>
#include <devmgr/container_devices.h>
#include <devmgr/object_meta.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cri_client.h"
#include "pod_steps.h"

namespace edge {

/// Annotation of a sandbox: the manifest that its pod was started from. With it
/// a pod goes on as it began, whatever becomes of its file.
inline constexpr char kManifestAnnotation[] = "devmgr/edge-manifest";
/// Annotation of a container: SeenContainer::back_off, in milliseconds.
inline constexpr char kBackOffAnnotation[] = "devmgr/edge-back-off-ms";

/// A pod whose manifest was read.
struct PodSpec {
  std::string text;  ///< The manifest, as JSON.
  nlohmann::json json;
  devmgr::ObjectMeta metadata;  ///< With its UID.
  PodPlan plan;
  std::chrono::seconds grace{30};
  /// What it asks for and has no effect here, by path.
  std::vector<std::string> ignored;
};

/// Where what belongs to a pod lies on the host.
struct PodPlaces {
  std::filesystem::path volumes;
  std::filesystem::path logs;
};

/// Reads a manifest, as devmgr::PodTextsOf has it.
///   InvalidArgument  it is no valid pod, or needs what this program cannot do;
///                    the message names all of that
absl::StatusOr<PodSpec> ReadPodSpec(const std::string& text,
                                    const devmgr::PodUid& uid);

/// `root` becomes the label kRootLabel.
cri::PodSandboxConfig SandboxConfigOf(const PodSpec& spec,
                                      std::uint32_t attempt,
                                      const PodPlaces& places,
                                      const std::string& root);

/// The container that is to be started, with its devices: those of CDI by name.
/// Makes the directories of its `emptyDir` volumes.
absl::StatusOr<cri::ContainerConfig> ContainerConfigOf(
    const PodSpec& spec, const Step& start, const PodPlaces& places,
    const devmgr::ContainerDevices& devices);

/// Puts edits in the place of the names of CDI devices.
void ReplaceCdiNames(const devmgr::CriEdits& edits,
                     cri::ContainerConfig* config);

}  // namespace edge
