// SPDX-License-Identifier: Apache-2.0
#include "node/plugin_endpoints.h"

#include <map>
#include <string>
#include <utility>

#include "common/status.h"
#include "registration/grpc_plugin_socket.h"

namespace devmgr::node {

absl::StatusOr<std::unique_ptr<PluginEndpoints>> PluginEndpoints::Open(
    Parts parts) {
  std::unique_ptr<PluginEndpoints> endpoints(
      new PluginEndpoints(std::move(parts)));
  DEVMGR_RETURN_IF_ERROR(endpoints->OpenDirectory());
  DEVMGR_RETURN_IF_ERROR(endpoints->OpenSocket());
  return endpoints;
}

absl::Status PluginEndpoints::OpenDirectory() {
  const auto& directory = parts_.plugin_registry_dir;
  if (directory.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(watcher_,
                          watcher::DirectoryWatcher::Start(
                              parts_.runtime.poller(), directory,
                              [this, alive = std::weak_ptr<int>(alive_)](
                                  const watcher::DirectoryEvent& event) {
                                parts_.executor.Post([this, alive, event] {
                                  if (!alive.expired())
                                    Registered().OnDirectoryEvent(event);
                                });
                              }));
  return absl::OkStatus();
}

registration::Registrar& PluginEndpoints::Registered() {
  if (registrar_ == nullptr) {
    registrar_ = std::make_unique<registration::Registrar>(
        parts_.executor, parts_.plugin_registry_dir,
        registration::GrpcPluginDialer(parts_.runtime),
        std::map<std::string, registration::PluginHandler*>{
            {dra::DriverRegistry::kPluginType, &parts_.drivers()},
            {plugin::PluginRegistry::kPluginType, &parts_.plugins()}},
        parts_.log);
  }
  return *registrar_;
}

absl::Status PluginEndpoints::OpenSocket() {
  const auto& directory = parts_.device_plugin_dir;
  if (directory.empty()) return absl::OkStatus();
  plugin::RegistrySocketOptions options;
  options.directory = directory;
  options.log = parts_.log;
  DEVMGR_ASSIGN_OR_RETURN(
      socket_, plugin::RegistrySocket::Start(
                   parts_.executor, parts_.runtime, std::move(options),
                   [this](const plugin::RegisterRequest& request,
                          plugin::RegistrySocket::Answer answer) {
                     parts_.plugins().RegisterFromSocket(
                         request, parts_.device_plugin_dir, std::move(answer));
                   }));
  return absl::OkStatus();
}

std::vector<std::shared_ptr<const RegistrationSocketInfo>>
PluginEndpoints::RegistrationSockets() const {
  if (registrar_ == nullptr) return {};
  return registrar_->Sockets();
}

}  // namespace devmgr::node
