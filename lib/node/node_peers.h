// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/options.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/executor.h"
#include "dra/drivers.h"
#include "node/plugin_endpoints.h"
#include "plugin/plugins.h"
#include "rpc/connection.h"

namespace devmgr::node {

/// Makes the drivers and plugins of a real node, and the endpoints at which
/// they register, on the manager's executor, where they live. The drivers,
/// which go last, keep the runtime.
class NodePeers : public std::enable_shared_from_this<NodePeers> {
 public:
  NodePeers(std::shared_ptr<rpc::Runtime> runtime, DeviceManagerOptions options,
            Host host)
      : runtime_(std::move(runtime)),
        options_(std::move(options)),
        host_(std::move(host)) {}

  /// As manager::DriversFactory.
  std::unique_ptr<dra::Drivers> MakeDrivers(
      Executor& executor, std::function<void(const std::string&)> on_change);
  /// As manager::PluginsFactory.
  std::unique_ptr<plugin::Plugins> MakePlugins(
      Executor& executor, plugin::PluginListener& listener);
  /// As PluginEndpoints::Open, for those above, which may be made later. Keeps
  /// this alive.
  absl::StatusOr<std::shared_ptr<PluginEndpoints>> OpenPluginEndpoints(
      Executor& executor);

 private:
  const std::shared_ptr<rpc::Runtime> runtime_;
  const DeviceManagerOptions options_;
  const Host host_;
  dra::DriverRegistry* drivers_ = nullptr;
  plugin::PluginRegistry* plugins_ = nullptr;
};

}  // namespace devmgr::node
