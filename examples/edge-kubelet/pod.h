// SPDX-License-Identifier: Apache-2.0
//
// What a pod is to be, and what is next for it. Pure.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/runtime_source.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "devmgr/wire/cri/v1/cri.pb.h"

namespace edge {

namespace cri = devmgr::wire::cri::v1;
using devmgr::WallTime;
using std::chrono::milliseconds;

struct PlannedContainer {
  enum class Kind { kInit, kSidecar, kApp };
  std::string name;
  Kind kind = Kind::kApp;
  cri::ContainerConfig config = {};  ///< Without devices: the shim adds them.
  /// Its crashes up to this attempt do not count any more.
  std::uint32_t recovered_attempt = 0;
};

struct PodPlan {
  std::string restart_policy = "Always";
  /// Init containers and sidecars in their order, then the others.
  std::vector<PlannedContainer> containers;
  cri::PodSandboxConfig sandbox = {};
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

/// As the kubelet: the first restart is at once, then after `first`, doubled up
/// to `last`; a container that ran for twice as long as `last` begins anew.
struct BackOff {
  milliseconds first{10'000};
  milliseconds last{300'000};
};

struct Step {
  /// A method of the runtime; empty: there is nothing to do before `until`.
  std::string call;
  /// An ID; of CreateContainer, which is followed by its start, the name.
  std::string what;
  std::uint32_t attempt = 0;  ///< Of CreateContainer.
  std::optional<WallTime> until = std::nullopt;
};

/// `Succeeded` or `Failed` when no container is to run any more; else empty.
std::string PhaseOf(const PodPlan& plan, const devmgr::PodRun& run);

/// The step that is next. To be asked again after it was taken, whether or not
/// it succeeded. Notes in `plan` which containers have recovered.
Step NextStep(PodPlan* plan, const devmgr::PodRun& run, const BackOff& back_off,
              WallTime now);

/// The newest attempt; null: there is none.
const devmgr::ContainerRun* Newest(const devmgr::PodRun& run,
                                   const std::string& name);

}  // namespace edge
