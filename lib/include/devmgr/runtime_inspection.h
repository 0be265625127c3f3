// SPDX-License-Identifier: Apache-2.0
//
// Looking at the containers of a runtime, over CRI: what they really hold,
// against what the ledger says they should.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi.h>
#include <devmgr/cdi_registry.h>
#include <devmgr/container_devices.h>
#include <devmgr/export.h>
#include <devmgr/fsck.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// A container as its runtime lists it.
struct RuntimeContainer {
  enum class State { kCreated, kRunning, kExited, kUnknown };
  std::string id;
  std::string name;  ///< In its pod.
  std::uint32_t attempt = 0;
  State state = State::kUnknown;
  /// Of its sandbox; empty: of no pod, such as one that crictl made.
  PodUid pod_uid;
  ObjectName pod;
  /// Value of kAllocationAnnotation; empty: a shim has not changed it.
  std::string allocation;
  friend bool operator==(const RuntimeContainer&,
                         const RuntimeContainer&) = default;
};

/// `created`, `running`, `exited`, `unknown`.
DEVMGR_EXPORT std::string_view RuntimeContainerStateName(
    RuntimeContainer::State state);

/// What a runtime made of a container's request.
struct RuntimeContainerConfig {
  std::string oci;  ///< The OCI runtime configuration, as JSON.
  /// CDI devices that it was created with, by field or annotation, as far as
  /// the runtime tells.
  std::vector<std::string> cdi_devices;
  std::map<std::string, std::string> annotations;
};

/// Asks a runtime about its containers. One thread at a time; each call blocks
/// for the timeout of Connect at most.
///   Unavailable, DeadlineExceeded  the runtime does not answer
/// and its own errors; all name the endpoint.
class DEVMGR_EXPORT RuntimeInspector {
 public:
  ///   Unavailable       no process listens at `endpoint`
  ///   PermissionDenied  the socket is not ours to use
  ///   Unimplemented     it speaks no `runtime.v1`
  static absl::StatusOr<std::unique_ptr<RuntimeInspector>> Connect(
      const std::filesystem::path& endpoint, std::chrono::milliseconds timeout);

  virtual ~RuntimeInspector() = default;

  /// Name and version, as `containerd 1.6.20`.
  virtual std::string Runtime() const = 0;

  /// All of them, by ID.
  virtual absl::StatusOr<std::vector<RuntimeContainer>> Containers() = 0;

  /// From a verbose ContainerStatus, the format of which is the runtime's own:
  /// containerd and CRI-O have the configuration as `runtimeSpec` in `info`.
  ///   NotFound            there is no such container
  ///   FailedPrecondition  the answer cannot be read; names the runtime, its
  ///                       version and what is missing
  virtual absl::StatusOr<RuntimeContainerConfig> ConfigOf(
      const std::string& id) = 0;
};

/// The container of that ID, or of the only ID that begins so.
///   NotFound         there is none
///   InvalidArgument  `id` is empty, or several begin so; names them
DEVMGR_EXPORT absl::StatusOr<RuntimeContainer> FindRuntimeContainer(
    const std::vector<RuntimeContainer>& containers, std::string_view id);

/// Something that a container has or lacks against the ledger.
struct HeldDifference {
  enum class Kind {
    kMissing,     ///< The ledger says it, the container lacks it.
    kAdditional,  ///< The container has it, the ledger knows nothing of it.
    kDiffers,
  };
  Kind kind = Kind::kMissing;
  std::string what;       ///< `environment`, `mount`, `device node`, ...
  std::string name;       ///< Variable, path in the container, CDI name, ...
  std::string ledger;     ///< The value there; may be empty.
  std::string container;  ///< The value there; may be empty.
  friend bool operator==(const HeldDifference&,
                         const HeldDifference&) = default;
};

/// `missing`, `additional`, `differs`.
DEVMGR_EXPORT std::string_view HeldDifferenceKindName(
    HeldDifference::Kind kind);

/// How what a container holds differs from what `devices` would give to one
/// that is created now: by variable, mount, device node with its access, hook,
/// net device, group, annotation and RDT class, and the digest of
/// kAllocationAnnotation. Sorted by `what` and `name`.
///
/// Additional can be device nodes and CDI devices: of all else it is not known
/// what the pod or its image brought. CDI names are compared where the runtime
/// tells any; a shim before a runtime without CDI leaves none. Blocks as `host`
/// does, and for links in paths of mounts.
///   FailedPrecondition  what the ledger says cannot be had now: a CDI device
///                       that no file defines, a host node that is gone; or
///                       the container's configuration is none
DEVMGR_EXPORT absl::StatusOr<std::vector<HeldDifference>> CompareWithLedger(
    const RuntimeContainer& container, const RuntimeContainerConfig& config,
    const ContainerDevices& devices, const CdiRegistry& registry,
    const CdiHost& host = SystemCdiHost());

/// What the ledger says of pods. A pod that it does not know is not there.
///   FailedPrecondition  the pod is given nothing: it is rejected
///   Unavailable         that is not known now, as while it is prepared
using LedgerAnswers = std::map<PodUid, absl::StatusOr<PodDevices>>;

/// Containers that have not exited and that a shim has given devices, as
/// kAllocationAnnotation tells, against the ledger:
///   `unaccounted-container`  the ledger knows nothing of what it was given: a
///                            warning where only its client did, or the ledger
///                            cannot tell now
///   `different-allocation`   it was given other things than the ledger says
DEVMGR_EXPORT std::vector<FsckFinding> CheckRuntimeContainers(
    const std::vector<RuntimeContainer>& containers,
    const LedgerAnswers& answers);

/// A container that no shim has marked, with what its runtime made of it.
struct UnmarkedContainer {
  RuntimeContainer container;
  RuntimeContainerConfig config;
};

/// Containers that were made past the shim, against the ledger, which answers
/// for all pods:
///   `unaccounted-container`  it has a device node, or was created with a CDI
///                            device, that a device of `registry` or of a
///                            plugin brings, and its pod holds none of these:
///                            others do, or none
/// The nodes that every container has say nothing, nor do those of a privileged
/// one, which reaches all of the host. Of a pod for which the ledger cannot
/// answer now nothing is said. Blocks as `host` does.
DEVMGR_EXPORT std::vector<FsckFinding> CheckUnmarkedContainers(
    const std::vector<UnmarkedContainer>& containers,
    const LedgerAnswers& answers, const CdiRegistry& registry,
    const CdiHost& host = SystemCdiHost());

}  // namespace devmgr
