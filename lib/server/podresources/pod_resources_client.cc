// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_resources_client.h>
#include <devmgr/wire/podresources/v1/podresources.pb.h>

#include <future>
#include <utility>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/connection.h"
#include "rpc/message.h"
#include "server/podresources/decoding.h"
#include "server/podresources/service.h"

namespace devmgr {
namespace {

class ConnectedClient final : public PodResourcesClient {
 public:
  ConnectedClient(std::filesystem::path socket,
                  std::chrono::milliseconds timeout,
                  std::unique_ptr<rpc::Runtime> runtime,
                  std::unique_ptr<rpc::Connection> connection)
      : socket_(std::move(socket)),
        timeout_(timeout),
        runtime_(std::move(runtime)),
        connection_(std::move(connection)) {}

  absl::StatusOr<std::vector<ListedPod>> List() override {
    auto answer = Call(podresources::kListPath, "");
    if (!absl::IsUnimplemented(answer.status())) {
      return Decoded(answer, podresources::DecodedList);
    }
    return Decoded(Call(podresources::kOldListPath, ""),
                   podresources::DecodedOldList);
  }

  absl::StatusOr<AllocatableResources> Allocatable() override {
    return Decoded(Call(podresources::kAllocatablePath, ""),
                   podresources::DecodedAllocatable);
  }

  absl::StatusOr<ListedPod> Get(const ObjectName& pod) override {
    wire::podresources::v1::GetPodResourcesRequest request;
    request.set_pod_namespace(pod.ns);
    request.set_pod_name(pod.name);
    return Decoded(Call(podresources::kGetPath, rpc::Encode(request)),
                   podresources::DecodedGet);
  }

 private:
  absl::StatusOr<std::string> Call(const char* path, std::string request) {
    // Shared, because the completion may run a moment after it woke us.
    auto answer = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    auto answered = answer->get_future();
    rpc::Connection::CallOptions options;
    options.timeout = timeout_;
    connection_->Call(path, std::move(request), options,
                      [answer](absl::StatusOr<std::string> bytes) {
                        answer->set_value(std::move(bytes));
                      });
    return answered.get();
  }

  template <typename Value>
  absl::StatusOr<Value> Decoded(
      const absl::StatusOr<std::string>& answer,
      absl::StatusOr<Value> (*decode)(const std::string&)) const {
    if (!answer.ok()) return WithSocket(Unmarked(answer.status()));
    absl::StatusOr<Value> value = decode(*answer);
    // The request was fine: it is the answer that makes no sense.
    if (!value.ok()) {
      return InternalError("'{}': {}", socket_.string(),
                           MessageOf(value.status()));
    }
    return value;
  }

  /// What is not about a pod names the socket.
  absl::Status WithSocket(const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kCancelled:
        // We cancel nothing: a server that stops does.
        return UnavailableError("no answer from '{}': {}", socket_.string(),
                                MessageOf(status));
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kUnimplemented:
        return WithContext(status, "no answer from '{}'", socket_.string());
      case absl::StatusCode::kDeadlineExceeded:
      case absl::StatusCode::kResourceExhausted:
        return WithContext(status, "'{}'", socket_.string());
      default:
        return status;
    }
  }

  const std::filesystem::path socket_;
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PodResourcesClient>> PodResourcesClient::Connect(
    const std::filesystem::path& socket, std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) {
    return InvalidArgumentError("timeout of {} ms: must be positive",
                                timeout.count());
  }
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Runtime> runtime,
                          rpc::Runtime::Start());
  auto connection = rpc::Dial(*runtime, socket, [] {});
  if (!connection.ok()) {
    // A missing file or one that is no socket: nobody listens either way.
    const absl::Status status =
        WithContext(connection.status(), "'{}'", socket.string());
    return status.code() == absl::StatusCode::kPermissionDenied
               ? status
               : MakeStatus(absl::StatusCode::kUnavailable, MessageOf(status));
  }
  return std::make_unique<ConnectedClient>(socket, timeout, std::move(runtime),
                                           *std::move(connection));
}

}  // namespace devmgr
