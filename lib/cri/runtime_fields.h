// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the fields of CRI messages that are read or written here, as
// `runtime.v1` of Kubernetes' cri-api has them, and the paths of its methods.
// There is no generated code for CRI: what is not named here passes as bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace devmgr::cri {

namespace method {
inline constexpr std::string_view kVersion =
    "/runtime.v1.RuntimeService/Version";
inline constexpr std::string_view kStatus = "/runtime.v1.RuntimeService/Status";
inline constexpr std::string_view kRunPodSandbox =
    "/runtime.v1.RuntimeService/RunPodSandbox";
inline constexpr std::string_view kStopPodSandbox =
    "/runtime.v1.RuntimeService/StopPodSandbox";
inline constexpr std::string_view kRemovePodSandbox =
    "/runtime.v1.RuntimeService/RemovePodSandbox";
inline constexpr std::string_view kStreamPodSandboxes =
    "/runtime.v1.RuntimeService/StreamPodSandboxes";
inline constexpr std::string_view kListPodSandbox =
    "/runtime.v1.RuntimeService/ListPodSandbox";
inline constexpr std::string_view kPodSandboxStatus =
    "/runtime.v1.RuntimeService/PodSandboxStatus";
inline constexpr std::string_view kCreateContainer =
    "/runtime.v1.RuntimeService/CreateContainer";
inline constexpr std::string_view kStartContainer =
    "/runtime.v1.RuntimeService/StartContainer";
inline constexpr std::string_view kStopContainer =
    "/runtime.v1.RuntimeService/StopContainer";
inline constexpr std::string_view kRemoveContainer =
    "/runtime.v1.RuntimeService/RemoveContainer";
inline constexpr std::string_view kStreamContainers =
    "/runtime.v1.RuntimeService/StreamContainers";
inline constexpr std::string_view kListContainers =
    "/runtime.v1.RuntimeService/ListContainers";
inline constexpr std::string_view kContainerStatus =
    "/runtime.v1.RuntimeService/ContainerStatus";
inline constexpr std::string_view kRestorePod =
    "/runtime.v1.RuntimeService/RestorePod";
}  // namespace method

// One namespace per message.
namespace field {
namespace create_container_request {
inline constexpr std::uint32_t kPodSandboxId = 1;
inline constexpr std::uint32_t kConfig = 2;
inline constexpr std::uint32_t kSandboxConfig = 3;
}  // namespace create_container_request

namespace create_container_response {
inline constexpr std::uint32_t kContainerId = 1;
}  // namespace create_container_response

namespace run_pod_sandbox_request {
inline constexpr std::uint32_t kConfig = 1;
inline constexpr std::uint32_t kRuntimeHandler = 2;
}  // namespace run_pod_sandbox_request

namespace run_pod_sandbox_response {
inline constexpr std::uint32_t kPodSandboxId = 1;
}  // namespace run_pod_sandbox_response

namespace remove_pod_sandbox_request {
inline constexpr std::uint32_t kPodSandboxId = 1;
}  // namespace remove_pod_sandbox_request

namespace restore_pod_request {
inline constexpr std::uint32_t kConfig = 2;
inline constexpr std::uint32_t kRuntimeHandler = 3;
inline constexpr std::uint32_t kContainerConfigs = 5;
}  // namespace restore_pod_request

namespace restore_pod_response {
inline constexpr std::uint32_t kPodSandboxId = 1;
inline constexpr std::uint32_t kRestoredContainers = 2;
}  // namespace restore_pod_response

namespace restored_container {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kContainerId = 2;
}  // namespace restored_container

namespace start_container_request {
inline constexpr std::uint32_t kContainerId = 1;
}  // namespace start_container_request

namespace container_config {
inline constexpr std::uint32_t kMetadata = 1;
inline constexpr std::uint32_t kEnvs = 6;
inline constexpr std::uint32_t kMounts = 7;
inline constexpr std::uint32_t kDevices = 8;
inline constexpr std::uint32_t kLabels = 9;
inline constexpr std::uint32_t kAnnotations = 10;
inline constexpr std::uint32_t kLinux = 15;
inline constexpr std::uint32_t kCdiDevices = 17;
}  // namespace container_config

namespace remove_container_request {
inline constexpr std::uint32_t kContainerId = 1;
}  // namespace remove_container_request

namespace container_metadata {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kAttempt = 2;
}  // namespace container_metadata

namespace linux_container_config {
inline constexpr std::uint32_t kSecurityContext = 2;
}  // namespace linux_container_config

namespace linux_container_security_context {
inline constexpr std::uint32_t kSupplementalGroups = 8;
}  // namespace linux_container_security_context

namespace key_value {
inline constexpr std::uint32_t kKey = 1;
inline constexpr std::uint32_t kValue = 2;
}  // namespace key_value

namespace device {
inline constexpr std::uint32_t kContainerPath = 1;
inline constexpr std::uint32_t kHostPath = 2;
inline constexpr std::uint32_t kPermissions = 3;
}  // namespace device

namespace cdi_device {
inline constexpr std::uint32_t kName = 1;
}  // namespace cdi_device

namespace mount {
inline constexpr std::uint32_t kContainerPath = 1;
inline constexpr std::uint32_t kHostPath = 2;
inline constexpr std::uint32_t kReadonly = 3;
inline constexpr std::uint32_t kPropagation = 5;
inline constexpr std::uint32_t kMountOptions = 11;
}  // namespace mount

namespace pod_sandbox_config {
inline constexpr std::uint32_t kMetadata = 1;
inline constexpr std::uint32_t kLabels = 6;
inline constexpr std::uint32_t kAnnotations = 7;
}  // namespace pod_sandbox_config

namespace pod_sandbox_metadata {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kUid = 2;
inline constexpr std::uint32_t kNamespace = 3;
inline constexpr std::uint32_t kAttempt = 4;
}  // namespace pod_sandbox_metadata

namespace list_pod_sandbox_response {
inline constexpr std::uint32_t kItems = 1;
}  // namespace list_pod_sandbox_response

namespace pod_sandbox {
inline constexpr std::uint32_t kId = 1;
inline constexpr std::uint32_t kMetadata = 2;
inline constexpr std::uint32_t kState = 3;
inline constexpr std::uint32_t kCreatedAt = 4;
inline constexpr std::uint32_t kLabels = 5;
inline constexpr std::uint32_t kAnnotations = 6;
}  // namespace pod_sandbox

namespace list_containers_response {
inline constexpr std::uint32_t kContainers = 1;
}  // namespace list_containers_response

namespace container {
inline constexpr std::uint32_t kId = 1;
inline constexpr std::uint32_t kPodSandboxId = 2;
inline constexpr std::uint32_t kMetadata = 3;
inline constexpr std::uint32_t kImage = 4;
inline constexpr std::uint32_t kImageRef = 5;
inline constexpr std::uint32_t kState = 6;
inline constexpr std::uint32_t kCreatedAt = 7;
inline constexpr std::uint32_t kAnnotations = 9;
}  // namespace container

namespace image_spec {
inline constexpr std::uint32_t kImage = 1;
inline constexpr std::uint32_t kUserSpecifiedImage = 18;
}  // namespace image_spec

namespace container_status_request {
inline constexpr std::uint32_t kContainerId = 1;
inline constexpr std::uint32_t kVerbose = 2;
}  // namespace container_status_request

namespace container_status_response {
inline constexpr std::uint32_t kStatus = 1;
inline constexpr std::uint32_t kInfo = 2;
}  // namespace container_status_response

namespace container_status {
inline constexpr std::uint32_t kId = 1;
inline constexpr std::uint32_t kState = 3;
inline constexpr std::uint32_t kStartedAt = 5;
inline constexpr std::uint32_t kFinishedAt = 6;
inline constexpr std::uint32_t kExitCode = 7;
inline constexpr std::uint32_t kReason = 10;
inline constexpr std::uint32_t kMessage = 11;
inline constexpr std::uint32_t kAnnotations = 13;
}  // namespace container_status

namespace pod_sandbox_status_request {
inline constexpr std::uint32_t kPodSandboxId = 1;
}  // namespace pod_sandbox_status_request

namespace pod_sandbox_status_response {
inline constexpr std::uint32_t kStatus = 1;
}  // namespace pod_sandbox_status_response

namespace pod_sandbox_status {
inline constexpr std::uint32_t kId = 1;
inline constexpr std::uint32_t kNetwork = 5;
}  // namespace pod_sandbox_status

namespace pod_sandbox_network_status {
inline constexpr std::uint32_t kIp = 1;
inline constexpr std::uint32_t kAdditionalIps = 2;
}  // namespace pod_sandbox_network_status

namespace pod_ip {
inline constexpr std::uint32_t kIp = 1;
}  // namespace pod_ip

namespace version_request {
inline constexpr std::uint32_t kVersion = 1;
}  // namespace version_request

namespace version_response {
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kRuntimeName = 2;
inline constexpr std::uint32_t kRuntimeVersion = 3;
inline constexpr std::uint32_t kRuntimeApiVersion = 4;
}  // namespace version_response

namespace status_request {
inline constexpr std::uint32_t kVerbose = 1;
}  // namespace status_request

namespace status_response {
inline constexpr std::uint32_t kInfo = 2;
}  // namespace status_response
}  // namespace field

}  // namespace devmgr::cri
