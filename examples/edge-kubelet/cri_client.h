// SPDX-License-Identifier: Apache-2.0
//
// A container runtime, called by CRI. Calls block; any thread may call.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// Where gRPC has it, by its version.
#if __has_include(<grpcpp/impl/proto_utils.h>)
#include <grpcpp/impl/proto_utils.h>
#else
#include <grpcpp/impl/codegen/proto_utils.h>
#endif

#include "devmgr/wire/cri/v1/cri.pb.h"

namespace edge {

namespace cri = devmgr::wire::cri::v1;

/// Labels: the kubelet's, and ours, which says whose root a sandbox is of.
inline constexpr char kUidLabel[] = "io.kubernetes.pod.uid";
inline constexpr char kRootLabel[] = "devmgr/edge-root";

class CriClient {
 public:
  explicit CriClient(const std::filesystem::path& socket);

  /// A method of RuntimeService. Errors are the runtime's, with the method in
  /// front.
  template <typename Response = cri::Empty, typename Request>
  absl::StatusOr<Response> Call(const std::string& method,
                                const Request& request,
                                std::chrono::seconds patience = kPatience) {
    return CallService<Response>("RuntimeService", method, request, patience);
  }
  /// Name and version.
  absl::StatusOr<std::string> Version();
  absl::Status DoWithSandbox(const std::string& method, const std::string& id);
  absl::Status DoWithContainer(const std::string& method,
                               const std::string& id);
  absl::Status StopContainer(const std::string& id, std::chrono::seconds grace);
  /// Those with this label.
  absl::StatusOr<std::vector<cri::PodSandbox>> Sandboxes(
      const std::string& label, const std::string& value);
  absl::StatusOr<std::vector<cri::Container>> ContainersOf(
      const std::string& pod_uid);
  absl::StatusOr<cri::ContainerStatus> StatusOf(const std::string& container);
  absl::StatusOr<bool> HasImage(const std::string& image);

 private:
  static constexpr std::chrono::seconds kPatience{120};  ///< The kubelet's.

  /// What generated stubs do, for messages of the lite runtime.
  template <typename Response, typename Request>
  absl::StatusOr<Response> CallService(const std::string& service,
                                       const std::string& method,
                                       const Request& request,
                                       std::chrono::seconds patience) {
    using Method = grpc::internal::RpcMethod;
    const std::string path = "/runtime.v1." + service + "/" + method;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    Response response;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel_.get(), Method(path.c_str(), Method::NORMAL_RPC), &context,
        request, &response);
    if (status.ok()) return response;
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        method + ": " + status.error_message());
  }

  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace edge
