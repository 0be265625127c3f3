// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_inspection.h>

#include <algorithm>
#include <future>
#include <utility>

#include "common/status.h"
#include "cri/messages.h"
#include "cri/runtime_fields.h"
#include "rpc/connection.h"
#include "shim/container_config.h"
#include "shim/runtime_client.h"
#include "shim/runtime_snapshot.h"

namespace devmgr {
namespace {

RuntimeContainer ContainerOf(
    cri::Container&& item,
    const std::map<std::string, cri::SandboxIdentity>& sandboxes) {
  RuntimeContainer container;
  container.id = std::move(item.id);
  container.name = std::move(item.name);
  container.attempt = item.attempt;
  container.state = shim::RunStateOf(item.state);
  if (const auto sandbox = sandboxes.find(item.sandbox_id);
      sandbox != sandboxes.end()) {
    container.pod_uid = sandbox->second.uid;
    container.pod = sandbox->second.pod;
  }
  const auto stamp = item.annotations.find(std::string(kAllocationAnnotation));
  if (stamp != item.annotations.end()) container.allocation = stamp->second;
  return container;
}

class ConnectedRuntime : public RuntimeInspector {
 public:
  ConnectedRuntime(std::filesystem::path endpoint,
                   std::chrono::milliseconds timeout,
                   std::unique_ptr<rpc::Runtime> runtime,
                   std::unique_ptr<rpc::Connection> connection)
      : endpoint_(std::move(endpoint)),
        timeout_(timeout),
        runtime_(std::move(runtime)),
        connection_(std::move(connection)) {}

  absl::Status Meet() {
    DEVMGR_ASSIGN_OR_RETURN(
        version_,
        Ask(cri::method::kVersion, shim::VersionRequest(), cri::ReadVersion));
    return absl::OkStatus();
  }

  std::string Runtime() const override {
    return version_.runtime_name + " " + version_.runtime_version;
  }

  absl::StatusOr<std::vector<RuntimeContainer>> Containers() override {
    // The sandbox of a container that is listed is older than that.
    DEVMGR_ASSIGN_OR_RETURN(auto items, Ask(cri::method::kListContainers, "",
                                            cri::ReadListContainers));
    DEVMGR_ASSIGN_OR_RETURN(
        const auto sandboxes,
        Ask(cri::method::kListPodSandbox, "", cri::ReadListPodSandbox));
    std::map<std::string, cri::SandboxIdentity> identities;
    for (const cri::Sandbox& sandbox : sandboxes) {
      identities[sandbox.id] = sandbox.identity;
    }
    std::vector<RuntimeContainer> containers;
    for (cri::Container& item : items) {
      containers.push_back(ContainerOf(std::move(item), identities));
    }
    std::sort(containers.begin(), containers.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return containers;
  }

  absl::StatusOr<RuntimeContainerConfig> ConfigOf(
      const std::string& id) override {
    DEVMGR_ASSIGN_OR_RETURN(
        cri::ContainerStatus status,
        Ask(cri::method::kContainerStatus, shim::ContainerStatusRequest(id),
            cri::ReadContainerStatus));
    auto config = shim::ConfigIn(std::move(status));
    if (config.ok()) return config;
    return WithContext(config.status(), "runtime at '{}' ({} {}), container {}",
                       endpoint_.string(), version_.runtime_name,
                       version_.runtime_version, id);
  }

 private:
  template <typename T>
  absl::StatusOr<T> Ask(std::string_view method, std::string request,
                        absl::StatusOr<T> (*read)(std::string_view)) {
    std::promise<absl::StatusOr<std::string>> promise;
    connection_->Call(std::string(method), std::move(request), {timeout_},
                      [&promise](absl::StatusOr<std::string> bytes) {
                        promise.set_value(std::move(bytes));
                      });
    const absl::StatusOr<std::string> bytes = promise.get_future().get();
    auto answer = bytes.ok() ? read(*bytes) : absl::StatusOr<T>(bytes.status());
    if (answer.ok()) return answer;
    return WithContext(answer.status(), "runtime at '{}', {}",
                       endpoint_.string(), method);
  }

  const std::filesystem::path endpoint_;
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
  cri::VersionResponse version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RuntimeInspector>> RuntimeInspector::Connect(
    const std::filesystem::path& endpoint, std::chrono::milliseconds timeout) {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Runtime> runtime,
                          rpc::Runtime::Start());
  auto connection = rpc::Dial(*runtime, endpoint, [] {}, {shim::kMaxListBytes});
  if (!connection.ok()) {
    const absl::Status& status = connection.status();
    if (status.code() == absl::StatusCode::kPermissionDenied) {
      return WithContext(status, "runtime at '{}'", endpoint.string());
    }
    return UnavailableError("no runtime at '{}': {}", endpoint.string(),
                            MessageOf(status));
  }
  auto inspector = std::make_unique<ConnectedRuntime>(
      endpoint, timeout, std::move(runtime), *std::move(connection));
  DEVMGR_RETURN_IF_ERROR(inspector->Meet());
  return inspector;
}

absl::StatusOr<RuntimeContainer> FindRuntimeContainer(
    const std::vector<RuntimeContainer>& containers, std::string_view id) {
  if (id.empty()) return InvalidArgumentError("the ID of a container is empty");
  std::vector<const RuntimeContainer*> found;
  for (const RuntimeContainer& container : containers) {
    if (container.id == id) return container;
    if (container.id.starts_with(id)) found.push_back(&container);
  }
  if (found.empty()) {
    return NotFoundError("the runtime has no container '{}'", id);
  }
  if (found.size() == 1) return *found.front();
  // Some are enough to see what is meant.
  return InvalidArgumentError(
      "the IDs of {} containers begin with '{}': {}, "
      "{}{}",
      found.size(), id, found[0]->id, found[1]->id,
      found.size() > 2 ? ", ..." : "");
}

}  // namespace devmgr
