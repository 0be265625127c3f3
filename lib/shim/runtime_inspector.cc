// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_inspection.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/status.h"
#include "cri/messages.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "rpc/connection.h"
#include "shim/json_member.h"
#include "shim/runtime_client.h"

namespace devmgr {
namespace {

using shim::MemberOf;
using Json = nlohmann::json;

RuntimeContainer::State StateOf(cri::ContainerState state) {
  switch (state) {
    case cri::ContainerState::kCreated:
      return RuntimeContainer::State::kCreated;
    case cri::ContainerState::kRunning:
      return RuntimeContainer::State::kRunning;
    case cri::ContainerState::kExited:
      return RuntimeContainer::State::kExited;
    case cri::ContainerState::kUnknown:
      break;
  }
  return RuntimeContainer::State::kUnknown;
}

RuntimeContainer ContainerOf(
    cri::Container&& item,
    const std::map<std::string, cri::SandboxIdentity>& sandboxes) {
  RuntimeContainer container;
  container.id = std::move(item.id);
  container.name = std::move(item.name);
  container.attempt = item.attempt;
  container.state = StateOf(item.state);
  if (const auto sandbox = sandboxes.find(item.sandbox_id);
      sandbox != sandboxes.end()) {
    container.pod_uid = sandbox->second.uid;
    container.pod = sandbox->second.pod;
  }
  const auto stamp = item.annotations.find(std::string(kAllocationAnnotation));
  if (stamp != item.annotations.end()) container.allocation = stamp->second;
  return container;
}

/// From containerd's copy of the request.
std::vector<std::string> NamesInRequest(const Json& info) {
  std::vector<std::string> names;
  for (const Json& device : MemberOf(info, "config", "CDI_devices")) {
    const Json& name = MemberOf(device, "name");
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

absl::StatusOr<RuntimeContainerConfig> ConfigIn(cri::ContainerStatus status) {
  const auto info = status.info.find("info");
  if (info == status.info.end()) {
    return FailedPreconditionError(
        "a verbose ContainerStatus has no 'info', where the OCI configuration "
        "would be");
  }
  const auto json = shim::ParseJson(info->second);
  if (!json.ok()) {
    return FailedPreconditionError("'info' of a verbose ContainerStatus {}",
                                   MessageOf(json.status()));
  }
  const Json& spec = MemberOf(*json, "runtimeSpec");
  if (!spec.is_object()) {
    return FailedPreconditionError(
        "'info' of a verbose ContainerStatus has no 'runtimeSpec', the OCI "
        "configuration");
  }
  RuntimeContainerConfig config;
  config.oci = spec.dump(-1, ' ', false, Json::error_handler_t::replace);
  DEVMGR_ASSIGN_OR_RETURN(config.cdi_devices, CdiNamesOf(NamesInRequest(*json),
                                                         status.annotations));
  config.annotations = std::move(status.annotations);
  return config;
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
    namespace f = cri::field::container_status_request;
    std::string request;
    cri::AppendBytesField(&request, f::kContainerId, id);
    cri::AppendVarintField(&request, f::kVerbose, 1);
    DEVMGR_ASSIGN_OR_RETURN(
        cri::ContainerStatus status,
        Ask(cri::method::kContainerStatus, request, cri::ReadContainerStatus));
    auto config = ConfigIn(std::move(status));
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

std::string_view RuntimeContainerStateName(RuntimeContainer::State state) {
  switch (state) {
    case RuntimeContainer::State::kCreated:
      return "created";
    case RuntimeContainer::State::kRunning:
      return "running";
    case RuntimeContainer::State::kExited:
      return "exited";
    case RuntimeContainer::State::kUnknown:
      break;
  }
  return "unknown";
}

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
