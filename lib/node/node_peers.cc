// SPDX-License-Identifier: Apache-2.0
#include "node/node_peers.h"

#include <fmt/core.h>

#include <chrono>
#include <map>
#include <string_view>

#include "common/status.h"
#include "dra/driver_registry.h"
#include "plugin/plugin_registry.h"

namespace devmgr::node {
namespace {

/// A line for each call that ended.
void LogCall(const LogSink& log, const std::string& peer,
             std::string_view method, std::string_view code,
             std::chrono::nanoseconds took) {
  if (!log) return;
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took);
  log(LogLevel::kDebug,
      fmt::format("call {} of {} ended after {}.{:03} ms: {}", method, peer,
                  us.count() / 1000, us.count() % 1000, code));
}

dra::DriverRegistryOptions DriverOptions(
    const DeviceManagerOptions& options, const Host& host,
    std::function<void(const std::string&)> on_change) {
  dra::DriverRegistryOptions registry;
  registry.instance.call_timeout = options.dra.call_timeout;
  registry.instance.max_calls = options.dra.max_calls;
  registry.instance.on_call =
      [sink = host.metrics, log = host.log](
          const std::string& driver, const std::string& method,
          const std::string& code, std::chrono::nanoseconds took) {
        if (sink != nullptr) sink->OnDriverCall(driver, method, code, took);
        LogCall(log, "DRA driver " + driver, method, code, took);
      };
  registry.endpoint_dirs = options.plugin_dirs;
  if (!registry.endpoint_dirs.empty()) {
    registry.endpoint_dirs.push_back(options.plugin_registry_dir);
  }
  registry.api = {options.dra.compat, options.dra.apis};
  registry.now = host.now;
  registry.on_change = std::move(on_change);
  return registry;
}

plugin::PluginRegistryOptions PluginOptions(const DeviceManagerOptions& options,
                                            const Host& host) {
  plugin::PluginRegistryOptions registry;
  plugin::CallTimeouts& timeouts = registry.instance.timeouts;
  timeouts.preferred = options.device_plugins.call_timeout;
  timeouts.allocate = options.device_plugins.call_timeout;
  timeouts.pre_start = options.device_plugins.call_timeout;
  for (const auto& [resource, timeout] : options.device_plugins.call_timeouts) {
    registry.timeouts[resource] = {timeouts.options, timeout, timeout, timeout};
  }
  registry.long_lists_apart = true;
  registry.pod_identity_metadata = options.device_plugins.pod_identity_metadata;
  registry.now = host.now;
  registry.on_call = [log = host.log](const ResourceName& resource,
                                      std::string_view method,
                                      const absl::Status& status,
                                      std::chrono::nanoseconds took) {
    LogCall(log, "the device plugin of '" + resource.value + "'", method,
            status.ok() ? "OK" : MessageOf(status), took);
  };
  return registry;
}

}  // namespace

std::unique_ptr<dra::Drivers> NodePeers::MakeDrivers(
    Executor& executor, std::function<void(const std::string&)> on_change) {
  auto drivers = std::make_unique<dra::DriverRegistry>(
      executor,
      [runtime = runtime_](const std::filesystem::path& socket,
                           std::function<void()> on_hang_up) {
        return rpc::Dial(*runtime, socket, std::move(on_hang_up));
      },
      DriverOptions(options_, host_, std::move(on_change)));
  drivers_ = drivers.get();
  return drivers;
}

std::unique_ptr<plugin::Plugins> NodePeers::MakePlugins(
    Executor& executor, plugin::PluginListener& listener) {
  auto plugins = std::make_unique<plugin::PluginRegistry>(
      executor, plugin::UnixDialer(*runtime_), PluginOptions(options_, host_),
      listener);
  plugins_ = plugins.get();
  return plugins;
}

absl::StatusOr<std::shared_ptr<PluginEndpoints>> NodePeers::OpenPluginEndpoints(
    Executor& executor) {
  DEVMGR_ASSIGN_OR_RETURN(
      std::shared_ptr<PluginEndpoints> endpoints,
      PluginEndpoints::Open(
          {executor, *runtime_,
           [self = shared_from_this()]() -> dra::DriverRegistry& {
             return *self->drivers_;
           },
           [self = shared_from_this()]() -> plugin::PluginRegistry& {
             return *self->plugins_;
           },
           options_.plugin_registry_dir, options_.device_plugin_dir,
           host_.log}));
  return endpoints;
}

}  // namespace devmgr::node
