// SPDX-License-Identifier: Apache-2.0
#include "cri_client.h"

namespace edge {
namespace {

std::shared_ptr<grpc::Channel> Dial(const std::filesystem::path& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(16 << 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3'000);
  return grpc::CreateCustomChannel(
      "unix://" + std::filesystem::absolute(socket).string(),
      grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

CriClient::CriClient(const std::filesystem::path& socket)
    : channel_(Dial(socket)) {}

absl::StatusOr<std::string> CriClient::Version() {
  auto answer = Call<cri::VersionResponse>("Version", cri::VersionRequest());
  if (!answer.ok()) return answer.status();
  return answer->runtime_name() + " " + answer->runtime_version();
}

absl::Status CriClient::DoWithSandbox(const std::string& method,
                                      const std::string& id) {
  cri::PodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  return Call(method, request).status();
}

absl::Status CriClient::DoWithContainer(const std::string& method,
                                        const std::string& id) {
  cri::ContainerRequest request;
  request.set_container_id(id);
  return Call(method, request).status();
}

absl::Status CriClient::StopContainer(const std::string& id,
                                      std::chrono::seconds grace) {
  cri::StopContainerRequest request;
  request.set_container_id(id);
  request.set_timeout(grace.count());
  return Call("StopContainer", request, kPatience + grace).status();
}

absl::StatusOr<std::vector<cri::PodSandbox>> CriClient::Sandboxes(
    const std::string& label, const std::string& value) {
  cri::ListPodSandboxRequest request;
  (*request.mutable_filter()->mutable_label_selector())[label] = value;
  auto answer = Call<cri::ListPodSandboxResponse>("ListPodSandbox", request);
  if (!answer.ok()) return answer.status();
  return std::vector(answer->items().begin(), answer->items().end());
}

absl::StatusOr<std::vector<cri::Container>> CriClient::ContainersOf(
    const std::string& pod_uid) {
  cri::ListContainersRequest request;
  (*request.mutable_filter()->mutable_label_selector())[kUidLabel] = pod_uid;
  auto answer = Call<cri::ListContainersResponse>("ListContainers", request);
  if (!answer.ok()) return answer.status();
  return std::vector(answer->containers().begin(), answer->containers().end());
}

absl::StatusOr<cri::ContainerStatus> CriClient::StatusOf(
    const std::string& container) {
  cri::ContainerRequest request;
  request.set_container_id(container);
  auto answer = Call<cri::ContainerStatusResponse>("ContainerStatus", request);
  if (!answer.ok()) return answer.status();
  return answer->status();
}

absl::StatusOr<bool> CriClient::HasImage(const std::string& image) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  auto answer = CallService<cri::ImageStatusResponse>(
      "ImageService", "ImageStatus", request, kPatience);
  if (!answer.ok()) return answer.status();
  return answer->has_image();
}

}  // namespace edge
