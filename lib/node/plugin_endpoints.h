// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "common/executor.h"
#include "dra/driver_registry.h"
#include "plugin/plugin_registry.h"
#include "plugin/registry_socket.h"
#include "registration/registrar.h"
#include "rpc/connection.h"
#include "watcher/directory_watcher.h"

namespace devmgr::node {

/// Where drivers and plugins of a node register: the registration directory,
/// and the registry socket of device plugins. Lives on the manager's executor.
class PluginEndpoints {
 public:
  /// What is borrowed must outlive this.
  struct Parts {
    Executor& executor;
    rpc::Runtime& runtime;
    /// The drivers and plugins, which are there when the executor's tasks
    /// after that of Open run.
    std::function<dra::DriverRegistry&()> drivers;
    std::function<plugin::PluginRegistry&()> plugins;
    /// Empty: there is no such endpoint.
    std::filesystem::path plugin_registry_dir;
    std::filesystem::path device_plugin_dir;
    LogSink log;
  };

  /// May block for the disk.
  ///   FailedPrecondition  another process serves the registry socket
  ///   others              a directory cannot be watched, a socket not be made
  static absl::StatusOr<std::unique_ptr<PluginEndpoints>> Open(Parts parts);

  std::vector<std::shared_ptr<const RegistrationSocketInfo>>
  RegistrationSockets() const;

 private:
  explicit PluginEndpoints(Parts parts) : parts_(std::move(parts)) {}
  absl::Status OpenDirectory();
  registration::Registrar& Registered();
  absl::Status OpenSocket();

  const Parts parts_;
  // Destroyed from the bottom up: no event, then no handshake.
  /// Null until the first event.
  std::unique_ptr<registration::Registrar> registrar_;
  std::unique_ptr<plugin::RegistrySocket> socket_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<watcher::DirectoryWatcher> watcher_;
};

}  // namespace devmgr::node
