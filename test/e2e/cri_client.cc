// SPDX-License-Identifier: Apache-2.0
#include "e2e/cri_client.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>
#include <utility>

#include "common/status.h"
#include "cri/messages.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using cri::AppendBytesField;
using cri::AppendVarintField;

/// Of NamespaceMode.
constexpr std::uint64_t kNode = 2;
/// Of the messages below, what the library has no use for.
constexpr std::uint32_t kLogDirectory = 3, kSandboxLinux = 8, kImage = 2,
                        kCommand = 3, kLogPath = 11, kNamespaceOptions = 3;

std::string KeyValue(const NamedValue& value) {
  std::string bytes;
  AppendBytesField(&bytes, cri::field::key_value::kKey, value.name);
  AppendBytesField(&bytes, cri::field::key_value::kValue, value.value);
  return bytes;
}

std::string Nested(std::uint32_t field, const std::string& bytes) {
  std::string message;
  AppendBytesField(&message, field, bytes);
  return message;
}

std::string HostNetwork() {
  std::string options;
  AppendVarintField(&options, 1, kNode);
  return options;
}

std::string SandboxConfig(const TestSandbox& sandbox) {
  namespace f = cri::field::pod_sandbox_config;
  namespace m = cri::field::pod_sandbox_metadata;
  std::string metadata, config;
  AppendBytesField(&metadata, m::kName, sandbox.name);
  AppendBytesField(&metadata, m::kUid, sandbox.uid);
  AppendBytesField(&metadata, m::kNamespace, sandbox.ns);
  AppendVarintField(&metadata, m::kAttempt, sandbox.attempt);
  AppendBytesField(&config, f::kMetadata, metadata);
  AppendBytesField(&config, kLogDirectory, sandbox.log_directory.string());
  AppendBytesField(&config, kSandboxLinux, Nested(2, Nested(1, HostNetwork())));
  return config;
}

std::string LogName(const TestContainer& container) {
  return fmt::format("{}_{}.log", container.name, container.attempt);
}

std::string Config(const std::string& image, const TestContainer& container) {
  namespace f = cri::field::container_config;
  std::string metadata, config;
  AppendBytesField(&metadata, cri::field::container_metadata::kName,
                   container.name);
  AppendVarintField(&metadata, cri::field::container_metadata::kAttempt,
                    container.attempt);
  AppendBytesField(&config, f::kMetadata, metadata);
  AppendBytesField(&config, kImage, Nested(1, image));
  for (const std::string& word : container.command) {
    AppendBytesField(&config, kCommand, word);
  }
  for (const NamedValue& value : container.env) {
    AppendBytesField(&config, f::kEnvs, KeyValue(value));
  }
  for (const NamedValue& value : container.annotations) {
    AppendBytesField(&config, f::kAnnotations, KeyValue(value));
  }
  AppendBytesField(&config, kLogPath, LogName(container));
  AppendBytesField(&config, f::kLinux,
                   Nested(2, Nested(kNamespaceOptions, HostNetwork())));
  for (const std::string& name : container.cdi_devices) {
    AppendBytesField(&config, f::kCdiDevices, Nested(1, name));
  }
  return config;
}

}  // namespace

std::unique_ptr<CriClient> CriClient::Connect(
    const std::filesystem::path& socket) {
  auto runtime = rpc::Runtime::Start();
  if (!runtime.ok()) {
    ADD_FAILURE() << runtime.status();
    return nullptr;
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    auto connection = rpc::Dial(**runtime, socket, [] {});
    if (connection.ok()) {
      std::unique_ptr<CriClient> client(
          new CriClient(*std::move(runtime), *std::move(connection)));
      // Who listens need not be ready to serve.
      while (std::chrono::steady_clock::now() < deadline) {
        if (client->Version().ok()) return client;
        ::poll(nullptr, 0, 20);
      }
      return nullptr;
    }
    ::poll(nullptr, 0, 20);
  }
  return nullptr;
}

absl::StatusOr<std::string> CriClient::Call(std::string_view method,
                                            std::string request) {
  const auto answers = std::make_shared<Mailbox<absl::StatusOr<std::string>>>();
  connection_->Call("/runtime.v1.RuntimeService/" + std::string(method),
                    std::move(request), {std::chrono::seconds(60)},
                    [answers](absl::StatusOr<std::string> bytes) {
                      answers->Put(std::move(bytes));
                    });
  auto answer = answers->Take(std::chrono::seconds(90));
  if (!answer) return absl::InternalError("the call never ended");
  return *std::move(answer);
}

absl::StatusOr<std::string> CriClient::CallWithId(std::string_view method,
                                                  const std::string& id) {
  return Call(method, Nested(1, id));
}

absl::StatusOr<std::string> CriClient::Version() {
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes, Call("Version", ""));
  DEVMGR_ASSIGN_OR_RETURN(const auto version, cri::ReadVersion(bytes));
  return version.runtime_name + " " + version.runtime_version;
}

absl::StatusOr<std::string> CriClient::RunPodSandbox(
    const TestSandbox& sandbox) {
  DEVMGR_ASSIGN_OR_RETURN(
      const std::string bytes,
      Call("RunPodSandbox", Nested(1, SandboxConfig(sandbox))));
  return cri::ReadText(bytes, 1, "RunPodSandboxResponse");
}

absl::StatusOr<std::string> CriClient::CreateContainer(
    const std::string& sandbox_id, const TestSandbox& sandbox,
    const std::string& image, const TestContainer& container,
    bool with_sandbox_config) {
  namespace f = cri::field::create_container_request;
  std::string request;
  AppendBytesField(&request, f::kPodSandboxId, sandbox_id);
  AppendBytesField(&request, f::kConfig, Config(image, container));
  TestSandbox told = sandbox;
  // The runtime wants a config for the place of the logs.
  if (!with_sandbox_config) told.uid.clear();
  AppendBytesField(&request, f::kSandboxConfig, SandboxConfig(told));
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes,
                          Call("CreateContainer", std::move(request)));
  return cri::ReadText(bytes, 1, "CreateContainerResponse");
}

absl::Status CriClient::StartContainer(const std::string& id) {
  return CallWithId("StartContainer", id).status();
}

absl::Status CriClient::StopContainer(const std::string& id) {
  return CallWithId("StopContainer", id).status();
}

absl::Status CriClient::RemoveContainer(const std::string& id) {
  return CallWithId("RemoveContainer", id).status();
}

absl::StatusOr<int> CriClient::WaitForExit(const std::string& id) {
  constexpr std::uint32_t kStatus = 1, kState = 3, kExitCode = 7;
  constexpr std::uint64_t kExited = 2;
  std::uint64_t state = 0, code = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    DEVMGR_ASSIGN_OR_RETURN(const std::string bytes,
                            CallWithId("ContainerStatus", id));
    DEVMGR_ASSIGN_OR_RETURN(
        const std::string status,
        cri::ReadText(bytes, kStatus, "ContainerStatusResponse"));
    state = code = 0;
    DEVMGR_RETURN_IF_ERROR(cri::ForEachField(status, "ContainerStatus",
                                             [&](const cri::WireField& field) {
                                               if (field.number == kState)
                                                 state = field.varint;
                                               if (field.number == kExitCode)
                                                 code = field.varint;
                                             }));
    if (state == kExited) return static_cast<int>(code);
    // Only the runtime knows.
    ::poll(nullptr, 0, 20);
  }
  return DeadlineExceededError("container '{}' is still in state {}", id,
                               state);
}

absl::StatusOr<bool> CriClient::IsRunning(const std::string& id) {
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes, Call("ListContainers", ""));
  DEVMGR_ASSIGN_OR_RETURN(const auto containers,
                          cri::ReadListContainers(bytes));
  for (const cri::Container& container : containers) {
    if (container.id != id) continue;
    return container.state == cri::ContainerState::kRunning;
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> CriClient::Sandboxes() {
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes, Call("ListPodSandbox", ""));
  DEVMGR_ASSIGN_OR_RETURN(const auto sandboxes, cri::ReadListPodSandbox(bytes));
  std::vector<std::string> ids;
  for (const cri::Sandbox& sandbox : sandboxes) ids.push_back(sandbox.id);
  return ids;
}

absl::StatusOr<std::optional<std::string>> CriClient::Annotation(
    const std::string& id, const std::string& key) {
  DEVMGR_ASSIGN_OR_RETURN(const std::string bytes, Call("ListContainers", ""));
  DEVMGR_ASSIGN_OR_RETURN(const auto containers,
                          cri::ReadListContainers(bytes));
  for (const cri::Container& container : containers) {
    if (container.id != id) continue;
    const auto found = container.annotations.find(key);
    if (found == container.annotations.end()) return std::nullopt;
    return found->second;
  }
  return NotFoundError("there is no container '{}'", id);
}

absl::Status CriClient::StopAndRemoveSandbox(const std::string& id) {
  DEVMGR_RETURN_IF_ERROR(CallWithId("StopPodSandbox", id).status());
  return CallWithId("RemovePodSandbox", id).status();
}

std::string CriClient::Output(const TestSandbox& sandbox,
                              const TestContainer& container) {
  std::ifstream log(sandbox.log_directory / LogName(container));
  std::string output;
  // `<time> stdout F <text>`.
  for (std::string line; std::getline(log, line);) {
    const auto mark = line.find(" stdout F ");
    if (mark != std::string::npos) output += line.substr(mark + 10) + "\n";
  }
  return output;
}

}  // namespace devmgr
