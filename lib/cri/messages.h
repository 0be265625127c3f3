// SPDX-License-Identifier: Apache-2.0
//
// What is read of CRI messages: which pod a request is for, and what a
// container was given already.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cri {

using TextMap = std::map<std::string, std::string>;

/// Whose a sandbox is. From the metadata; where that lacks the pod's UID or
/// name, from the kubelet's labels.
struct SandboxIdentity {
  PodUid uid;  ///< Empty: of no pod, such as one that crictl made.
  ObjectName pod;
  std::uint32_t attempt = 0;
  friend bool operator==(const SandboxIdentity&,
                         const SandboxIdentity&) = default;
};

struct SandboxConfig {
  SandboxIdentity identity;
  TextMap annotations;  ///< The pod's own.
};

/// `bind` mounts only carry both paths; images have no host path.
struct ContainerConfig {
  std::string name;
  std::uint32_t attempt = 0;
  std::vector<NamedValue> env;  ///< Values are any bytes.
  std::vector<DeviceMount> mounts;
  std::vector<DeviceNode> devices;
  TextMap annotations;
  std::vector<std::string> cdi_devices;
  std::vector<std::uint64_t> supplemental_groups;
};

struct CreateContainerRequest {
  std::string sandbox_id;
  ContainerConfig config;
  SandboxConfig sandbox;
};

struct RunPodSandboxRequest {
  SandboxConfig sandbox;
  std::string runtime_handler;
};

struct RestorePodRequest {
  SandboxConfig sandbox;
  std::vector<ContainerConfig> containers;
};

struct RestorePodResponse {
  struct Restored {
    std::string name;
    std::string container_id;
  };
  std::string sandbox_id;
  std::vector<Restored> containers;
};

/// An item of a list.
struct Sandbox {
  std::string id;
  SandboxIdentity identity;
  bool ready = false;
  std::int64_t created_at = 0;  ///< Unix time in ns; 0: it is not known.
};

enum class ContainerState : std::uint8_t {
  kCreated = 0,
  kRunning = 1,
  kExited = 2,
  kUnknown = 3,
};

/// An item of a list.
struct Container {
  std::string id;
  std::string sandbox_id;
  std::string name;
  std::uint32_t attempt = 0;
  ContainerState state = ContainerState::kUnknown;
  TextMap annotations;
  std::string image;            ///< As it was asked for.
  std::string image_ref;        ///< As the runtime calls it.
  std::int64_t created_at = 0;  ///< Unix time in ns; 0: it is not known.
};

/// What a ContainerStatus adds to the list. Times are Unix times in ns; 0: it
/// has not happened.
struct ContainerStatus {
  std::string id;
  TextMap annotations;
  /// Of a verbose one. The runtime's own: names and formats are no promise.
  TextMap info;
  ContainerState state = ContainerState::kUnknown;
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::int32_t exit_code = 0;
  std::string reason;
  std::string message;
};

/// What a PodSandboxStatus adds to the list.
struct SandboxStatus {
  std::string id;
  std::vector<std::string> ips;  ///< As the runtime says them, the first first.
};

struct VersionResponse {
  std::string runtime_name;
  std::string runtime_version;
};

// Each: InvalidArgument, naming the message, when the bytes are none.
absl::StatusOr<CreateContainerRequest> ReadCreateContainer(
    std::string_view request);
absl::StatusOr<RunPodSandboxRequest> ReadRunPodSandbox(
    std::string_view request);
absl::StatusOr<RestorePodRequest> ReadRestorePod(std::string_view request);
absl::StatusOr<RestorePodResponse> ReadRestorePodResponse(
    std::string_view response);
absl::StatusOr<std::vector<Sandbox>> ReadListPodSandbox(
    std::string_view response);
absl::StatusOr<std::vector<Container>> ReadListContainers(
    std::string_view response);
absl::StatusOr<ContainerStatus> ReadContainerStatus(std::string_view response);
absl::StatusOr<SandboxStatus> ReadPodSandboxStatus(std::string_view response);
absl::StatusOr<VersionResponse> ReadVersion(std::string_view response);
/// The map `info` of a verbose Status.
absl::StatusOr<TextMap> ReadStatusInfo(std::string_view response);
/// The text in field `number` of any message, such as an id; of several the
/// last, as protobuf has it, and empty when there is none.
absl::StatusOr<std::string> ReadText(std::string_view message,
                                     std::uint32_t number,
                                     std::string_view what);

}  // namespace devmgr::cri
